"""Prices of GPUs by instance type and model: the built-in list prices, and the user's own.

A file has lists, each with the date and the source of its prices. A list that is older than a year
is not used: a price is unknown rather than stale. That includes the instance types and models that
only such a list names: another price that fits them may be that of a much smaller instance or GPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple

from adapter.pipeline.catalog.migprofile import gpu_part
from adapter.pipeline.catalog.modelnames import is_of
from adapter.pipeline.cluster.nodelabels import SPOT
from adapter.tools.client.errors import ClientError
from apiservice.runtime.yamltext import YamlError, document

CURRENCY: Final = "USD"
_BUILT_IN: Final = Path(__file__).with_name("prices.yaml")
_DAYS: Final = 366
"""Days for which a list is used."""
_LARGEST: Final = 1 << 20
_HIGHEST: Final = 1e12
_MOST_GPUS: Final = 1024
_FORM: Final = "write `prices:` with a price per hour for each model, or `instances:`"
_MODELS: Final = ("prices", "spot")
_LIST: Final = ("date", "source", *_MODELS, "instances")
_INSTANCE: Final = ("gpu", "gpus", "price", "spot")

Json = dict[str, Any]


class InstancePrice(NamedTuple):
    """Prices of one GPU of an instance type, per hour."""

    price: float | None
    """On demand."""
    spot: float | None


_UNKNOWN: Final = InstancePrice(None, None)


class PriceList(NamedTuple):
    """Prices per hour."""

    prices: Mapping[str, float | None]
    """A word or more of a model's name -> price per hour of a whole GPU; None if only a stale list
    names it."""
    currency: str = CURRENCY
    own: bool = False
    """Whether the user named it."""
    spot: Mapping[str, float | None] = {}
    """The same of spot nodes."""
    instances: Mapping[str, InstancePrice] = {}
    """Instance type -> prices of one of its GPUs; without any if only a stale list names it."""
    newest: date | None = None
    """The date of the newest list; None if none has one."""
    stale: int = 0
    """Lists that are older than a year, and so not used."""

    @property
    def dated(self) -> str:
        """The month of the newest list; empty without a date."""
        return "" if self.newest is None else self.newest.strftime("%B %Y")

    @property
    def note(self) -> str:
        """What a reader of a sum has to know about its prices, as a sentence; empty if nothing."""
        all_prices = (*self.prices.values(), *self.spot.values(), *chain(*self.instances.values()))
        if self.stale and all(price is None for price in all_prices):
            return "The prices are older than a year and not used: name yours with --prices."
        old = "some are older than a year and not used" if self.stale else ""
        if self.own:
            return f"Of the prices, {old}: update the file of --prices." if old else ""
        of = f"The prices are list prices of {self.dated}"
        return f"{of}{', and ' if old else ''}{old}: name yours with --prices."

    def of(
        self, model: str, mig_profile: str = "", instance: str = "", capacity: str = ""
    ) -> float | None:
        """Return the price per hour of a GPU or of its instance; None if it is not known.

        Args:
            model: the longest name whose words the model's name contains in this order decides.
            mig_profile: a MIG instance costs the part of the GPU's compute that it has.
            instance: type of the node; its own price takes precedence over that of the model.
            capacity: ``spot`` if the node is paid for so. A list without a price for it has none.
        """
        whole = self._whole_price(model, instance, spot=capacity == SPOT)
        part = gpu_part(mig_profile, model)
        return None if whole is None or part is None else whole * part

    def _whole_price(self, model: str, instance: str, *, spot: bool) -> float | None:
        of_type = self.instances.get(instance)
        if of_type is not None:
            return of_type.spot if spot else of_type.price
        prices = self.spot if spot else self.prices
        names = [name for name in prices if is_of(model, name)]
        return prices[max(names, key=len)] if names else None


def load(file: Path | None, today: date | None = None) -> PriceList:
    """Return the built-in prices, or those of a file.

    A file is YAML: ``currency``, and either ``lists`` or the keys of one list: ``date``,
    ``source``, ``prices: {H100: 2.5}``, ``spot: {H100: 1.1}`` and ``instances: {p5.48xlarge: {gpu:
    H100, gpus: 8, price: 20, spot: 9}}``.

    Args:
        file: None for the built-in ones.
        today: decides which lists are older than a year; now if it is None.

    Raises:
        ClientError: the file cannot be used; the message names the key and the fix.
    """
    path = file or _BUILT_IN
    try:
        if path.stat().st_size > _LARGEST:
            raise ClientError(f"{path} is larger than 1 MiB: name a list of prices")
        content = document(path.read_bytes())
    except OSError as error:
        raise ClientError(f"{path} cannot be read: {error.strerror or error}") from None
    except YamlError as error:
        raise ClientError(f"{path} cannot be read: {error}") from None
    return _PriceFile(path, today or datetime.now(UTC).date()).parse(content, own=file is not None)


class _PriceFile:
    """Parses a file of prices.

    Args:
        path: its name in messages.
        today: decides which lists are used.
    """

    def __init__(self, path: Path, today: date) -> None:
        self._path = path
        self._today = today
        self._models: dict[str, dict[str, float | None]] = {key: {} for key in _MODELS}
        self._instances: dict[str, InstancePrice] = {}
        self._dates: list[date] = []
        self._stale = 0
        self._stale_models: dict[str, set[str]] = {key: set() for key in _MODELS}
        self._stale_types: set[str] = set()

    def parse(self, content: Any, *, own: bool) -> PriceList:
        """Return the prices; raises ClientError."""
        if not isinstance(content, dict):
            raise self._error(_FORM)
        lists = content.get("lists")
        if lists is None:
            lists = [{key: content[key] for key in content if key != "currency"}]
            self._refuse_unknown(content, ("currency", "lists", *_LIST), "")
        else:
            self._refuse_unknown(content, ("currency", "lists"), "")
        if not isinstance(lists, list) or not all(isinstance(part, dict) for part in lists):
            raise self._error("lists: write a list of lists of prices")
        for part in lists:
            self._add(part)
        prices, spot = (
            dict.fromkeys(self._stale_models[kind]) | self._models[kind] for kind in _MODELS
        )
        return PriceList(
            prices,
            str(content.get("currency", CURRENCY)),
            own,
            spot,
            dict.fromkeys(self._stale_types, _UNKNOWN) | self._instances,
            max(self._dates, default=None),
            self._stale,
        )

    def _add(self, price_list: Json) -> None:
        self._refuse_unknown(price_list, _LIST, "")
        kinds = [key for key in (*_MODELS, "instances") if isinstance(price_list.get(key), dict)]
        if not kinds or any(
            key in price_list and key not in kinds for key in (*_MODELS, "instances")
        ):
            raise self._error(_FORM)
        used = self._is_used(price_list)
        for kind in _MODELS:
            for name, price in price_list.get(kind, {}).items():
                self._price_model(kind, str(name), self._number(f"{kind}.{name}", price), used)
        for name, entry in price_list.get("instances", {}).items():
            model, of_gpu = self._instance(str(name), entry)
            if used:
                self._instances.setdefault(str(name), of_gpu)
            else:
                self._stale_types.add(str(name))
            for kind, amount in zip(_MODELS, of_gpu, strict=True):
                if model and amount is not None:
                    self._price_model(kind, model, amount, used)

    def _price_model(self, kind: str, name: str, amount: float, used: bool) -> None:
        """Note the price of a model, or only its name if its list is not used."""
        if used:
            self._models[kind].setdefault(name, amount)
        else:
            self._stale_models[kind].add(name)

    def _is_used(self, price_list: Json) -> bool:
        """Return whether a list is used, by its date."""
        if "date" not in price_list:
            return True
        try:
            dated = date.fromisoformat(str(price_list["date"]))
        except ValueError:
            raise self._error(f"date is {price_list['date']!r}: write it as 2026-07-20") from None
        if (self._today - dated).days > _DAYS:
            self._stale += 1
            return False
        self._dates.append(dated)
        return True

    def _instance(self, name: str, entry: Any) -> tuple[str, InstancePrice]:
        """Return the model and the prices of one GPU of an instance type."""
        key = f"instances.{name}"
        if not isinstance(entry, dict) or not {"price", "spot"} & entry.keys():
            raise self._error(f"{key}: write gpu, gpus and price, or spot")
        self._refuse_unknown(entry, _INSTANCE, f"{key}.")
        gpus = entry.get("gpus", 1)
        if not isinstance(gpus, int) or isinstance(gpus, bool) or not 0 < gpus <= _MOST_GPUS:
            raise self._error(f"{key}.gpus is {gpus!r}: write the number of GPUs of the instance")
        numbers = [
            self._number(f"{key}.{word}", entry[word]) / gpus if word in entry else None
            for word in InstancePrice._fields
        ]
        return str(entry.get("gpu", "")), InstancePrice(*numbers)

    def _number(self, key: str, price: Any) -> float:
        number = isinstance(price, int | float) and not isinstance(price, bool)
        if not number or not 0 <= price < _HIGHEST:
            raise self._error(f"{key} is {price!r}: write a number from 0 to 1e12")
        return float(price)

    def _refuse_unknown(self, content: Json, known_keys: tuple[str, ...], before: str) -> None:
        unknown = sorted(str(key) for key in content if key not in known_keys)
        if unknown:
            price = content[next(key for key in content if str(key) == unknown[0])]
            amount = isinstance(price, int | float) and not isinstance(price, bool)
            # A number at the top level is the price of a model.
            fix = "move it under `prices:`" if amount and not before else "remove it"
            raise self._error(f"unknown key {before + unknown[0]!r}: {fix}")

    def _error(self, text: str) -> ClientError:
        return ClientError(f"{self._path}: {text}")
