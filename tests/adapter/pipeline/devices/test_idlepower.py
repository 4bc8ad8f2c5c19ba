"""Learning of idle power, and its bounds."""

from __future__ import annotations

from adapter.pipeline.devices.idlepower import IdlePower, IdleRange

WATTS = IdleRange(60.0, 70.0)


def test_models_beyond_the_limit_are_not_learned() -> None:
    idle = IdlePower()
    for model in range(17):
        idle.learn(f"model {model}", "GPU-0", WATTS)
    assert idle.of("model 15", "GPU-0") == WATTS
    assert idle.of("model 16", "GPU-0") is None


def test_devices_beyond_the_limit_of_a_model_use_the_idle_power_of_the_others() -> None:
    idle = IdlePower()
    for device in range(64):
        idle.learn("H100", f"GPU-{device}", WATTS)
    idle.learn("H100", "GPU-64", IdleRange(10.0, 20.0))
    assert idle.of("H100", "GPU-64") == WATTS
