"""The worked examples of chapter 3 of the thesis, "The TESLA Language", each named by its place.

Fire definition iv of 3.2.1 bounds a whole run of readings, with the time of its first (tesla.md
X3). Where a figure's values are not in the text, the test says what it assumes.
"""

import pytest
from engines import OF_MEANING, make
from timeline import detect, history, only, push, written

import rules
from matcher.model import MICROSECONDS, TIME_MAX

pytestmark = pytest.mark.parametrize("engine", OF_MEANING)
MINUTE = 60

SENSORS = """
event Smoke(Area: string)
event Temp(Area: string, Val: float)
event Rain(Area: string)
"""


# --- 3.2.1: a motivating example -----------------------------------------------------------------


def test_3_2_1_i_temperature_and_smoke_in_either_order(engine: str):
    text = f"""{SENSORS}
    define Fire(Val)
    from   Smoke(Area = $x) and each Temp(Val > 45 and Area = $x) within 3 min from Smoke
    where  Val = Temp.Val
    define Fire(Val)
    from   Temp(Val > 45, Area = $x) and each Smoke(Area = $x) within 3 min from Temp
    where  Val = Temp.Val
    """
    events = """T1=Temp@0("a", 48) S1=Smoke@1("a") T2=Temp@3("a", 50) T3=Temp@4("b", 60)
                T4=Temp@4("a", 45) S2=Smoke@7("b")"""
    assert detect(engine, text, events, unit=MINUTE) == [
        "Fire@1(48.0) <- S1 T1",
        "Fire@3(50.0) <- T2 S1",
        "Fire@7(60.0) <- S2 T3",
    ]


def test_3_2_1_ii_high_temperature_without_rain_in_the_last_hour(engine: str):
    text = f"""{SENSORS}
    define Fire(Val)
    from   Temp(Val > 45) and not Rain() within 1 hour from Temp
    where  Val = Temp.Val
    """
    events = """R=Rain@0("a") T1=Temp@30("a", 50) T2=Temp@60("a", 51) T3=Temp@61("a", 52)
                T4=Temp@62("a", 40)"""
    assert detect(engine, text, events, unit=MINUTE) == ["Fire@61(52.0) <- T3"]


def test_3_2_1_iii_smoke_and_a_high_average(engine: str):
    text = f"""{SENSORS}
    define Fire()
    from   Smoke() and Avg(Temp().Val within 3 min from Smoke) > 45
    """
    events = """S0=Smoke@0("a") Temp@1("a", 80) Temp@2("a", 44) Temp@3("a", 47) S1=Smoke@5("a")
                Temp@5("a", 41) S2=Smoke@6("a") S3=Smoke@20("a")"""
    # At 5 the temperature of 5 counts as well: (44 + 47 + 41) / 3 is 44.
    assert detect(engine, text, events, unit=MINUTE) == []
    warmer = events.replace("41", "45")
    assert detect(engine, text, warmer, unit=MINUTE) == ["Fire@5() <- S1", "Fire@6() <- S2"]


def test_3_2_1_iv_ten_increasing_readings_and_smoke_within_three_minutes(engine: str):
    """A run of readings of one area is begun by each and goes on with the next greater one."""
    text = f"""{SENSORS}
    define Run(Area, Length, Total, Top, Begun)
    from   Temp()
    where  Area = Temp.Area, Length = 1, Total = Temp.Val, Top = Temp.Val, Begun = Temp.time
    define Run(Area, Length, Total, Top, Begun)
    from   Temp($x, $v, time = $now) and
           each Run(Area = $x, Top < $v, $now - Begun <= 3 min) within 3 min from Temp and
           not Temp(Area = $x) between Run and Temp
    where  Area = $x, Length = Run.Length + 1, Total = Run.Total + $v, Top = $v, Begun = Run.Begun
    define Fire(Val)
    from   Smoke($x, time = $now) and
           last Run(Area = $x, Length >= 10, $now - Begun <= 3 min) within 3 min from Smoke
    where  Val = Run.Total / Run.Length
    """
    # One reading every 15 s from 20 degrees up, a degree more each; one elsewhere, and colder.
    readings = [f'Temp@{place / 4}("a", {20 + place})' for place in range(12)]
    readings.append('Temp@1.6("b", 3)')

    def fires(smoke: float, events: list[str]) -> list[str]:
        found = detect(engine, text, " ".join([*events, f'S=Smoke@{smoke}("a")']), unit=MINUTE)
        return [text.split(" <-")[0] for text in only(found, "Fire")]

    # The last of simultaneous runs is the longest that the bound allows: at 3 min all twelve, at
    # 3.5 min those from 0.5 min on, ten readings; later no ten readings are left.
    assert fires(3, readings) == ["Fire@3(25.5)"]
    assert fires(3.5, readings) == ["Fire@3.5(26.5)"]
    assert fires(3.6, readings) == []
    # A lower reading in the middle breaks the run.
    broken = [reading.replace("26)", "19)") for reading in readings]
    assert fires(3, broken) == []


def test_figure_3_1_policies_say_how_often_and_with_which_values(engine: str):
    events = 'T1=Temp@1("a", 48) T2=Temp@1.5("a", 50) S1=Smoke@2("a") S2=Smoke@2.5("a")'

    def fires(policy: str, consuming: str = "") -> list[str]:
        text = f"""{SENSORS}
        define Fire(Val)
        from   Smoke(Area = $x) and {policy} Temp(Val > 45 and Area = $x) within 3 min from Smoke
        where  Val = Temp.Val
        {consuming}
        """
        return detect(engine, text, events, unit=MINUTE)

    both = ["Fire@2(48.0) <- S1 T1", "Fire@2(50.0) <- S1 T2"]
    again = ["Fire@2.5(48.0) <- S2 T1", "Fire@2.5(50.0) <- S2 T2"]
    assert fires("each") == both + again
    assert fires("each", "consuming Temp") == both
    assert fires("last") == [both[1], again[1]]
    assert fires("last", "consuming Temp") == [both[1], again[0]]
    assert fires("first", "consuming Temp") == [both[0], again[1]]


# --- 3.4.4: valid patterns -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "pattern",
    ["WaterLevel(Level > 20) as WL", "WaterLevel() as WL and WL.Level > 20"],
)
def test_3_4_4_event_occurrence(engine: str, pattern: str):
    text = f"""
    event WaterLevel(Name: string, Level: float)
    define Overflow(Name) from {pattern} where Name = WL.Name
    """
    events = 'W1=WaterLevel@1("Po", 20) W2=WaterLevel@2("Adda", 20.5) W3=WaterLevel@3("Po", 21)'
    assert detect(engine, text, events) == ['Overflow@2("Adda") <- W2', 'Overflow@3("Po") <- W3']


def test_3_4_4_two_events_at_the_same_time_are_two_composite_events(engine: str):
    text = "event SE(x: int) define CE(y) from SE(x > 1) where y = SE.x"
    ruleset = rules.load(text)
    detector = make(engine)
    detector.deploy(ruleset)
    push(detector, history("A=SE@1(2) B=SE@1(2)", ruleset), ruleset)
    found = list(detector.advance(TIME_MAX).events())
    assert written(found) == ["CE@1(2) <- A", "CE@1(2) <- B"]
    assert found[0].id != found[1].id  # lab is injective


# Figure 3.3 shows a Smoke at 4 and, before it, two temperatures above 45, the later one at 2; the
# one that is not above 45 stands at 3 here.
FIGURE_3_3 = 'T1=Temp@1("a", 50) T2=Temp@2("a", 48) T3=Temp@3("a", 30) S=Smoke@4("a")'


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("each", ["Fire@4(50.0) <- S T1", "Fire@4(48.0) <- S T2"]),
        ("last", ["Fire@4(48.0) <- S T2"]),
        ("first", ["Fire@4(50.0) <- S T1"]),
        ("2-last", ["Fire@4(50.0) <- S T1"]),
        ("2-first", ["Fire@4(48.0) <- S T2"]),
        ("3-first", []),
        ("3-last", []),
    ],
)
def test_figure_3_3_selection_policies(engine: str, policy: str, expected: list[str]):
    text = f"""{SENSORS}
    define Fire(Val)
    from   Smoke() and {policy} Temp(Val > 45) within 5min from Smoke
    where  Val = Temp.Val
    """
    assert detect(engine, text, FIGURE_3_3, unit=MINUTE) == expected


CHAINS = """
event A() event B() event C() event D() event E()
define D()
from   A() and each B() within 5min from A and
       last C() within 3min from A and
       last D() within 6min from B and
       first E() within 2min from D and
       E within 8min from A
"""


def test_3_4_4_operators_in_series_and_in_parallel(engine: str):
    events = """E1=E@2 E2=E@3 D1=D@4 B1=B@7 C1=C@7 B2=B@8 C2=C@9 A=A@10"""
    # E1 is the first E within 2 minutes from D1, and within 8 minutes from A.
    assert detect(engine, CHAINS, events, unit=MINUTE) == [
        "D@10() <- A B1 C2 D1 E1",
        "D@10() <- A B2 C2 D1 E1",
    ]


def test_3_4_4_within_for_an_event_already_defined(engine: str):
    """``E within 8min from A`` filters; it does not make ``first`` choose another E."""
    events = """E1=E@2 E2=E@3 D1=D@4 B1=B@7 C2=C@9 A=A@10.5"""
    assert detect(engine, CHAINS, events, unit=MINUTE) == []


def test_3_4_4_parameterization(engine: str):
    text = f"""{SENSORS}
    define Fire(Val)
    from   Smoke(Area = $x) and
           each Temp(Val > 45 and Area = $x) within 5min from Smoke
    where  Val = Temp.Val
    """
    events = 'T1=Temp@1("a", 50) T2=Temp@2("b", 60) S1=Smoke@3("a") S2=Smoke@4("b") S3=Smoke@4("c")'
    assert detect(engine, text, events, unit=MINUTE) == [
        "Fire@3(50.0) <- S1 T1",
        "Fire@4(60.0) <- S2 T2",
    ]


def test_3_4_4_theorem_uniqueness_of_selection(engine: str):
    """A set of events satisfies a rule once, however often the rule is evaluated."""
    ruleset = rules.load(
        f"""{SENSORS}
        define Fire(Val) from Smoke() and each Temp() within 5min from Smoke where Val = Temp.Val
        """
    )
    detector = make(engine)
    detector.deploy(ruleset)
    found = []
    for text in (FIGURE_3_3, 'T4=Temp@5("a", 46) S2=Smoke@6("a")'):
        push(detector, history(text, ruleset, unit=MINUTE), ruleset)
        for minute in (4, 5, 6):
            found += detector.advance(minute * MINUTE * MICROSECONDS).events()
    found += detector.advance(TIME_MAX).events()
    assert len(found) == 3 + 4
    assert len({event.id for event in found}) == 7


def test_3_4_4_timers(engine: str):
    """``Timer(H = 9, M = 00, D = Friday)`` on three weeks that begin on a Friday."""
    text = "event Note() define Weekly() from Timer(H = 9, M = 00, D = Friday)"
    day = 86_400
    friday = 1 * day  # 2 January 1970
    events = f"Note@{friday + 9 * 3600 + 1} Note@{friday + 14 * day + 9 * 3600}"
    weeks = [friday + weeks * 7 * day + 9 * 3600 for weeks in (1, 2)]
    assert detect(engine, text, events) == [f"Weekly@{time:g}() <- timer/{time}" for time in weeks]


def test_3_4_4_negation_between_two_events(engine: str):
    text = f"""{SENSORS}
    define Fire(Val)
    from   Smoke(Area = $x) and
           each Temp(Val > 45 and Area = $x) within 5min from Smoke and
           not Rain(Area = $x) between Temp and Smoke
    where  Val = Temp.Val
    """
    events = """T1=Temp@1("a", 50) R1=Rain@2("a") T2=Temp@2("a", 51) T3=Temp@3("a", 52)
                R2=Rain@3.5("b") S1=Smoke@4("a") R3=Rain@5("a") S2=Smoke@5("a")"""
    # The rain at 2 does not count against the temperature of 2: the interval is open there.
    assert detect(engine, text, events, unit=MINUTE) == [
        "Fire@4(51.0) <- S1 T2",
        "Fire@4(52.0) <- S1 T3",
    ]


def test_3_4_4_negation_within_a_time(engine: str):
    text = f"""{SENSORS}
    define Fire(Val)
    from   Smoke(Area = $x) and
           each Temp(Val > 45 and Area = $x) within 5min from Smoke and
           not Rain(Area = $x) within 5min from Smoke
    where  Val = Temp.Val
    """
    events = """R1=Rain@1("a") R2=Rain@2("b") T1=Temp@3("a", 50) S1=Smoke@6("a") S2=Smoke@6.5("a")
                T2=Temp@3("b", 60) S3=Smoke@7("b")"""
    assert detect(engine, text, events, unit=MINUTE) == ["Fire@6.5(50.0) <- S2 T1"]


def test_3_4_4_event_consumption(engine: str):
    """A new Smoke does not fire the rule until a new Temp, followed by a further Smoke."""
    text = f"""{SENSORS}
    define Fire(Val)
    from   Smoke() and each Temp(Val > 45) within 5min from Smoke
    where  Val = Temp.Val
    consuming Temp
    """
    events = """T1=Temp@1("a", 50) T2=Temp@2("a", 51) S1=Smoke@3("a") S2=Smoke@4("a")
                T3=Temp@5("a", 52) S3=Smoke@6("a")"""
    assert detect(engine, text, events, unit=MINUTE) == [
        "Fire@3(50.0) <- S1 T1",
        "Fire@3(51.0) <- S1 T2",
        "Fire@6(52.0) <- S3 T3",
    ]


def test_3_4_4_event_consumption_is_valid_within_one_rule_only(engine: str):
    fire = """
    define {} (Val) from Smoke() and each Temp(Val > 45) within 5min from Smoke
    where Val = Temp.Val consuming Temp
    """
    text = SENSORS + fire.format("Fire") + fire.format("Alarm")
    events = 'T=Temp@1("a", 50) S1=Smoke@2("a") S2=Smoke@3("a")'
    assert detect(engine, text, events, unit=MINUTE) == [
        "Fire@2(50.0) <- S1 T",
        "Alarm@2(50.0) <- S1 T",
    ]


def test_3_4_4_aggregates_with_a_timer(engine: str):
    text = """
    event Temp(Value: float)
    define AvgTemp(Val)
    from   Timer(M%5 == 0)
    where  Val = Avg(Temp().Value) within 5min from Timer
    """
    events = "Temp@0(10) Temp@5(20) Temp@6(60) Temp@21(0)"
    # At 0 and 5 both ends of the window count; at 15 and 20 the average of nothing is undefined.
    assert detect(engine, text, events, unit=MINUTE) == [
        "AvgTemp@0(10.0) <- timer/0",
        "AvgTemp@5(15.0) <- timer/300",
        "AvgTemp@10(40.0) <- timer/600",
    ]


def test_3_4_4_aggregates_between_two_events(engine: str):
    """``HighVal``, with Stock.Val for the thesis's S.Val (tesla.md section 7)."""
    text = """
    event Stock(Name: string, Val: float)
    event Opening()
    define HighVal(Name, Val)
    from   Stock(Name = $y, Val = $x) and
           last Opening() within 1day from Stock and
           $x > Avg(Stock(Name = $y).Val) between Opening and Stock
    where  Val = Stock.Val, Name = Stock.Name
    """
    events = """K0=Stock@0("ibm", 90) O=Opening@1 K1=Stock@2("ibm", 10) K2=Stock@3("hp", 30)
                K3=Stock@4("ibm", 12) K4=Stock@5("hp", 29) K5=Stock@6("ibm", 12)"""
    # The stock itself is within the interval: 12 > (10 + 12) / 2, and 12 > (10 + 12 + 12) / 3.
    assert detect(engine, text, events, unit=3600) == [
        'HighVal@4("ibm", 12.0) <- K3 O',
        'HighVal@6("ibm", 12.0) <- K5 O',
    ]


def test_3_4_4_recursive_processing(engine: str):
    """The weather forecast: averages every five minutes, trends over them, a forecast above."""
    text = """
    event Temp(Area: string, Value: float)
    event Wind(Speed: float)
    define AvgTemp(Val)
    from   Timer(M % 5 = 0) and Count(Temp(Area = "a") within 5 min from Timer) > 0
    where  Val = Avg(Temp(Area = "a").Value within 5 min from Timer)
    define Rising(Before, Now)
    from   AvgTemp(Val = $v) as now and last AvgTemp(Val < $v) as before within 5 min from now
    where  Before = before.Val, Now = now.Val
    define Storm(Speed)
    from   Rising() and last Wind(Speed > 20) within 10 min from Rising
    where  Speed = Wind.Speed
    """
    events = """Temp@1("a", 10) Temp@4("b", 99) Temp@6("a", 12) W=Wind@7(25) Temp@11("a", 11)
                Temp@16("a", 15) Temp@21("a", 9)"""
    found = detect(engine, text, events, unit=MINUTE)
    values = [text.split(" <- ")[0] for text in found]
    assert values == [
        "AvgTemp@5(10.0)",
        "AvgTemp@10(12.0)",
        "Rising@10(10.0, 12.0)",
        "Storm@10(25.0)",
        "AvgTemp@15(11.0)",
        "AvgTemp@20(15.0)",
        "Rising@20(11.0, 15.0)",
    ]


def test_3_4_4_iterations(engine: str):
    """Runs of A whose Val never decreases, counted by recursion."""
    text = """
    event A(Val: int)
    define RepA(Times, Val) from A() where Times = 1 and Val = A.Val
    define RepA(Times, Val)
    from   A($x) and last RepA(Val ≤ $x) within 3min from A
    where  Times = RepA.Times + 1 and Val = $x
    consuming RepA
    define B(Times) from RepA() where Times = RepA.Times
    """
    found = detect(engine, text, "A@1(5) A@2(7) A@2.5(6) A@3(7) A@7(9)", unit=MINUTE)
    values = [text.split(" <- ")[0] for text in only(found, "B")]
    # At 2.5 nothing is at most 6 any more: the 5 was consumed at 2. At 3 the last RepA, at 2.5,
    # is the one that began there. At 7 all are too old.
    assert values == ["B@1(1)", "B@2(1)", "B@2(2)", "B@2.5(1)", "B@3(1)", "B@3(2)", "B@7(1)"]
