"""The worked examples of chapter 5 of the thesis, "The T-Rex Engine": rules R1 to R8 and the runs
that its text and Figures 5.3 and 5.5 show. Times are in minutes, as there.
"""

import pytest
from engines import OF_MEANING
from timeline import detect

pytestmark = pytest.mark.parametrize("engine", OF_MEANING)
MINUTE = 60

EVENTS = """
event Smoke(area: string)
event Temp(area: string, value: double)
event Wind(area: string, speed: double)
event Rain(area: string)
"""

R1 = (
    EVENTS
    + """
define   Fire(area: string, measuredTemp: double)
from     Smoke(area=$a) and
         each Temp(area=$a and value>45)
         within 5 min. from Smoke
where    area=Smoke.area and measuredTemp=Temp.value
"""
)

R2 = (
    EVENTS
    + """
define    Fire(area: string, measuredTemp: double)
from      Smoke(area=$a) and
          each Temp(area=$a and value>45)
          within 5 min. from Smoke and
          each Wind(area=$a and speed>20)
          within 5 min. from Smoke and
          not Rain(area=$a) between Smoke and Wind
where     area=Smoke.area and measuredTemp=Temp.value
"""
)

R3 = (
    EVENTS
    + """
define    Fire(area: string, measuredTemp: double)
from      Smoke(area=$a) and
          last Temp(area=$a and value>45)
          within 5 min. from Smoke
where     area=Smoke.area and measuredTemp=Temp.value
consuming Temp
"""
)

R4 = (
    EVENTS
    + """
define    Fire(area: string, measuredTemp: double)
from      Smoke(area=$a) and
          first Temp(area=$a and value>45)
          within 5 min. from Smoke
where     area=Smoke.area and measuredTemp=Temp.value
"""
)

R5 = """
event A(p: int) event B(p: int, v: int) event C(p: int)
define   ComplexEvent()
from     C(p=$x) and each B(p=$x and v>10)
         within 8 min. from C and
         last A(p=$x) within 3 min. from B
"""

R6 = """
event A() event B() event C() event D() event E()
define    ComplexEvent()
from      E() and each D() within 3 min. from E
          and each C() within 3 min. from E
          and each B() within 3 min. from D
          and each A() within 3 min. from C
"""

R7 = (
    EVENTS
    + """
define   Fire(area: string, measuredTemp: double)
from     Smoke(area=$a) and
         45 < $t=Avg(Temp(area=$a).value
         within 5 min. from Smoke)
where    area=Smoke.area and measuredTemp=$t
"""
)

R8 = (
    EVENTS
    + """
define    Fire(area: string, measuredTemp: double)
from      Temp(area=$a and value>45) and
          not Rain(area=$a) within 5 min. from Temp
where     area=Temp.area and measuredTemp=Temp.value
"""
)


def test_5_2_rule_r1_fires_at_smoke_only(engine: str):
    assert detect(engine, R1, 'Smoke@1("a") T=Temp@2("a", 50)', unit=MINUTE) == []
    events = 'T1=Temp@1("a", 50) T2=Temp@2("a", 45) T3=Temp@2("b", 60) S=Smoke@6("a")'
    assert detect(engine, R1, events, unit=MINUTE) == ['Fire@6("a", 50.0) <- S T1']


def test_figure_5_3_rule_r1_step_by_step(engine: str):
    """At 7 the sequence of T1 dies, at 8 that of T2; T3 makes one with S2 and one with S3."""
    events = """T1=Temp@1("a", 50) T2=Temp@2("a", 51) S1=Smoke@5("b") T3=Temp@7("a", 52)
                S2=Smoke@8("a") S3=Smoke@9("a")"""
    assert detect(engine, R1, events, unit=MINUTE) == [
        'Fire@8("a", 52.0) <- S2 T3',
        'Fire@9("a", 52.0) <- S3 T3',
    ]


def test_5_3_2_rule_r2_combines_three_and_two_sequences_into_six(engine: str):
    events = """T1=Temp@1("a", 50) T2=Temp@2("a", 51) T3=Temp@3("a", 52)
                W1=Wind@2("a", 30) W2=Wind@3("a", 31) S=Smoke@5("a")"""
    assert detect(engine, R2, events, unit=MINUTE) == [
        f'Fire@5("a", {temperature}) <- S {temp} {wind}'
        for temp, temperature in (("T1", 50.0), ("T2", 51.0), ("T3", 52.0))
        for wind in ("W1", "W2")
    ]


def test_5_3_1_rule_r2_needs_both_sequences_of_one_area(engine: str):
    one = 'T1=Temp@1("a", 50) S=Smoke@5("a")'
    assert detect(engine, R2, one, unit=MINUTE) == []
    elsewhere = 'T1=Temp@1("a", 50) W1=Wind@1("b", 30) S=Smoke@5("a")'
    assert detect(engine, R2, elsewhere, unit=MINUTE) == []


def test_5_3_1_rule_r2_allows_no_rain_between_wind_and_smoke(engine: str):
    events = """T=Temp@1("a", 50) W1=Wind@2("a", 30) R=Rain@3("a") W2=Wind@4("a", 31)
                Rain@4.5("b") S=Smoke@5("a")"""
    assert detect(engine, R2, events, unit=MINUTE) == ['Fire@5("a", 50.0) <- S T W2']


def test_5_3_2_rule_r3_consumption_makes_an_older_event_the_last(engine: str):
    """T2 is consumed at the first Smoke, making T1 the right candidate for the second."""
    events = """T1=Temp@1("a", 50) T2=Temp@2("a", 51) S1=Smoke@3("a") S2=Smoke@4("a")
                S3=Smoke@5("a")"""
    assert detect(engine, R3, events, unit=MINUTE) == [
        'Fire@3("a", 51.0) <- S1 T2',
        'Fire@4("a", 50.0) <- S2 T1',
    ]


def test_5_3_2_rule_r4_a_later_event_becomes_the_first(engine: str):
    """T1 at 1 is first for the Smoke at 5; T2 at 4 becomes so when T1 is too old."""
    events = 'T1=Temp@1("a", 50) T2=Temp@4("a", 51) S1=Smoke@5("a") S2=Smoke@7("a")'
    assert detect(engine, R4, events, unit=MINUTE) == [
        'Fire@5("a", 50.0) <- S1 T1',
        'Fire@7("a", 51.0) <- S2 T2',
    ]


def test_figure_5_5_rule_r5_processing_using_columns(engine: str):
    """The figure's columns; events older than those that the text names are made up."""
    events = """A0=A@2(3) B0=B@4(3, 11) A1=A@7(1) B1=B@8(1, 11) A2=A@7.5(3) B2=B@11(3, 12)
                A3=A@12(3) B3=B@13(3, 13) A4=A@14(3) C=C@15(3)"""
    assert detect(engine, R5, events, unit=MINUTE) == ["ComplexEvent@15() <- C B3 A3"]


def test_figure_5_5_without_the_age_limit_of_a_there_are_two(engine: str):
    """What keeps B@11 out is that no A is within 3 minutes from it: with one, both fire."""
    events = "A2=A@8(3) B2=B@11(3, 12) A3=A@12(3) B3=B@13(3, 13) A4=A@14(3) C=C@15(3)"
    assert detect(engine, R5, events, unit=MINUTE) == [
        "ComplexEvent@15() <- C B2 A2",
        "ComplexEvent@15() <- C B3 A3",
    ]


def test_figure_5_6_rule_r6_two_sequences_share_the_terminator(engine: str):
    events = "A1=A@1 A2=A@3 B1=B@2 B2=B@4 C1=C@4 C2=C@6 D1=D@5 E=E@7"
    # A2 is within 3 minutes from both C; A1 from C1 alone; both B are from D1.
    assert detect(engine, R6, events, unit=MINUTE) == [
        f"ComplexEvent@7() <- E D1 {c} {b} {a}"
        for c, many in (("C1", ("A1", "A2")), ("C2", ("A2",)))
        for b in ("B1", "B2")
        for a in many
    ]


def test_5_8_rule_r7_embeds_the_average(engine: str):
    events = """T1=Temp@1("a", 90) T2=Temp@4("a", 44) T3=Temp@5("b", 99) S1=Smoke@6("a")
                T4=Temp@7("a", 48) S2=Smoke@8("a") S3=Smoke@30("a")"""
    assert detect(engine, R7, events, unit=MINUTE) == [
        'Fire@6("a", 67.0) <- S1',
        'Fire@8("a", 46.0) <- S2',
    ]


def test_5_8_rule_r8_fires_where_it_has_not_rained(engine: str):
    events = """R=Rain@1("a") T1=Temp@6("a", 50) T2=Temp@6("b", 51) T3=Temp@7("a", 52)
                T4=Temp@8("a", 45)"""
    assert detect(engine, R8, events, unit=MINUTE) == [
        'Fire@6("b", 51.0) <- T2',
        'Fire@7("a", 52.0) <- T3',
    ]
