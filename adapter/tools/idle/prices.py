"""Prices of GPUs by model: the built-in list prices, and the user's own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from adapter.tools.client.errors import ClientError
from apiservice.runtime.yamltext import YamlError, document

CURRENCY: Final = "USD"
LIST_DATE: Final = "July 2026"
LIST_PRICES: Final[Mapping[str, float]] = {
    "T4": 0.526,  # g4dn.xlarge
    "V100": 3.06,  # p3.2xlarge
    "A10G": 1.006,  # g5.xlarge
    "L4": 0.8048,  # g6.xlarge
    "L40S": 1.861,  # g6e.xlarge
    "RTX PRO 6000": 3.36312,  # g7e.2xlarge
    "A100-SXM4-40GB": 21.957642 / 8,  # p4d.24xlarge
    "A100-SXM4-80GB": 27.44705 / 8,  # p4de.24xlarge
    "H100": 55.04 / 8,  # p5.48xlarge
    "H200": 63.296 / 8,  # p5en.48xlarge
    "B200": 113.9328 / 8,  # p6-b200.48xlarge
    "B300": 142.416 / 8,  # p6-b300.48xlarge
    "A10": 3.2,  # Azure, NV36ads_A10_v5
    "A100 80GB PCIe": 3.673,  # Azure, NC24ads_A100_v4
    "GB200": 108.16 / 4,  # Azure, ND128isr_NDR_GB200_v6
    "MI300X": 62.853 / 8,  # Azure, ND96isr_MI300X_v5, westus
}
"""Model -> USD per hour and GPU: the price of a cloud's instance, divided by its GPUs.

On demand, Linux; of AWS in us-east-1 on 2026-07-20, and of Azure in eastus on 2026-06-18, as
Karpenter's providers publish them (aws/karpenter-provider-aws and Azure/karpenter-provider-azure,
pkg/providers/pricing). Prices differ by region, provider and contract, and change: a user who acts
on a sum names their own.
"""
_LARGEST: Final = 1 << 20
_HIGHEST: Final = 1e12
_PROFILE: Final = re.compile(r"(\d)g\.")
_SLICES: Final = {"A30": 4}
_WHOLE: Final = 7
"""Compute slices of a whole GPU with MIG (NVIDIA's MIG user guide); an A30 has 4."""


class PriceList(NamedTuple):
    """Prices per hour."""

    prices: Mapping[str, float]
    """A word or more of a model's name -> price per hour of a whole GPU."""
    currency: str = CURRENCY
    own: bool = False
    """Whether the user named it."""

    def of(self, model: str, mig_profile: str = "") -> float | None:
        """Return the price per hour of a GPU or of its instance; None if it is not known.

        The longest name whose words the model's name contains in this order decides. A MIG
        instance costs the share of the compute slices that it has.
        """
        words = _words(model)
        found = [name for name in self.prices if _contains(words, _words(name))]
        if not found:
            return None
        price = self.prices[max(found, key=len)]
        if not mig_profile:
            return price
        slices = _PROFILE.match(mig_profile)
        whole = next((n for name, n in _SLICES.items() if name in words), _WHOLE)
        return price * int(slices[1]) / whole if slices else None


def load(file: Path | None) -> PriceList:
    """Return the built-in prices, or those of a file.

    The file is YAML: ``currency: EUR`` and ``prices: {H100: 2.5, L4: 0.6}``.

    Raises:
        ClientError: the file cannot be used; the message names the key and the fix.
    """
    if file is None:
        return PriceList(LIST_PRICES)
    try:
        if file.stat().st_size > _LARGEST:
            raise ClientError(f"{file} is larger than 1 MiB: name a list of prices")
        content = document(file.read_bytes())
    except (OSError, YamlError) as error:
        raise ClientError(f"{file} cannot be read: {error}") from None
    return _parse(file, content)


def _parse(file: Path, content: Any) -> PriceList:
    if not isinstance(content, dict) or not isinstance(content.get("prices"), dict):
        raise ClientError(f"{file}: write `prices:` with a price per hour for each model")
    unknown = set(content) - {"prices", "currency"}
    if unknown:
        raise ClientError(f"{file}: unknown key {min(map(str, unknown))!r}: remove it")
    prices = {}
    for name, price in content["prices"].items():
        number = isinstance(price, int | float) and not isinstance(price, bool)
        if not number or not 0 <= price < _HIGHEST:
            raise ClientError(f"{file}: prices.{name} is {price!r}: write a number from 0 to 1e12")
        prices[str(name)] = float(price)
    return PriceList(prices, str(content.get("currency", CURRENCY)), own=True)


def _words(name: str) -> list[str]:
    return re.findall(r"[A-Z0-9]+", name.upper())


def _contains(words: list[str], some: list[str]) -> bool:
    return bool(some) and any(
        words[at : at + len(some)] == some for at in range(len(words) - len(some) + 1)
    )
