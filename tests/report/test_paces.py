"""How much longer an update takes, in a word."""

from __future__ import annotations

import pytest

from oomdoctor.report.memory.plan import pace
from oomdoctor.report.wording.wording import Wording


@pytest.mark.parametrize(("time", "en", "zh"), [
    pytest.param(1.0, "as fast as now", "速度基本不变", id="the same"),
    pytest.param(1.03, "as fast as now", "速度基本不变", id="finer than the model is"),
    pytest.param(1.18, "about a fifth slower", "约慢两成", id="slower"),
    pytest.param(0.79, "about a fifth less time", "耗时约少两成", id="faster"),
    pytest.param(2.1, "about twice the time", "耗时约为现在的 2 倍", id="twice"),
    pytest.param(4.2, "about 4 times the time", "耗时约为现在的 4 倍", id="much slower"),
])  # fmt: skip
def test_a_pace_is_said_as_people_say_it(time: float, en: str, zh: str) -> None:
    assert (pace(time, Wording("en")), pace(time, Wording("zh"))) == (en, zh)
