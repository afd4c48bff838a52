"""What the schedules plugin declares can be loaded."""

from importlib import import_module

import msgspec
import pytest

from pipebench_schedules.plugin import OneFOneBOptions, pipebench_schedulers


@pytest.mark.parametrize("name", ["gpipe", "1f1b", "kfkb", "interleaved-1f1b", "zb-h1", "zb-v", "1f1b*", "modulo"])
def test_every_scheduler_loads(name: str) -> None:
    (descriptor,) = [each for each in pipebench_schedulers() if each.name == name]
    module, _, attribute = descriptor.load.partition(":")
    assert callable(getattr(import_module(module), attribute))


def test_three_are_periodic() -> None:
    produces = {each.name: each.capabilities.produces for each in pipebench_schedulers()}
    assert [name for name, kind in produces.items() if kind == "periodic"] == ["1f1b*", "1f1b-rr", "modulo"]


def test_warm_ups() -> None:
    assert OneFOneBOptions().warmup == "+1"
    assert msgspec.convert({"warmup": "+2"}, OneFOneBOptions).warmup == "+2"
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"warmup": "+3"}, OneFOneBOptions)
