"""A cron expression in words: "every 5 minutes", "Mondays 03:00", "1st and 15th of the month 04:30". Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from console.schedules.expression import CronExpression, spans

_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_DAYS = ("Sundays", "Mondays", "Tuesdays", "Wednesdays", "Thursdays", "Fridays", "Saturdays")
_WEEK = (1, 2, 3, 4, 5, 6, 0)
_MOST_TIMES = 6  # that are listed one by one
_MOST_LISTED = 8


def words(expression: CronExpression) -> str:
    """When it runs, in the local time of the zone cron reads it in."""
    if expression.at_boot:
        return "once when cron starts after boot"
    if not expression.fires:
        return "never"
    days, times = _days(expression), _times(expression)
    if not days:
        return times if times.startswith("every") else f"every day {times}"
    if not times.startswith("every"):
        return f"{days} {times}"
    return f"{times} on {'the ' if days[0].isdigit() else ''}{days}"


def _times(expression: CronExpression) -> str:
    minutes, hours = expression.minutes, expression.hours
    if len(hours) == 24:
        return _each_hour(minutes)
    if len(minutes) * len(hours) <= _MOST_TIMES:
        return _joined([f"{hour:02}:{minute:02}" for hour in hours for minute in minutes])
    step = _step(hours, 24)
    if len(minutes) == 1 and step:
        return f"every {step} hours at :{minutes[0]:02}" + (f" from {hours[0]:02}:{minutes[0]:02}" if hours[0] else "")
    if len(minutes) == 1:
        return f":{minutes[0]:02} of the hours {_named(hours, '{:02}'.format)}"
    during = _joined([f"{first:02}:00 to {last:02}:59" for first, last in spans(hours)])
    return f"{_each_hour(minutes)} from {during}"


def _each_hour(minutes: tuple[int, ...]) -> str:
    if len(minutes) == 60:
        return "every minute"
    step = _step(minutes, 60)
    if step:
        return f"every {step} minutes" + (f" from :{minutes[0]:02}" if minutes[0] else "")
    if len(minutes) == 1:
        return "every hour" if minutes == (0,) else f"every hour at :{minutes[0]:02}"
    return f"every hour at {_listed([f':{minute:02}' for minute in minutes])}"


def _step(values: tuple[int, ...], size: int) -> int:
    """The gap between all of them, the last and the first of the next round included; 0 when there is not one."""
    if len(values) < 2:
        return 0
    step = values[1] - values[0]
    return step if size % step == 0 and values == tuple(range(values[0], size, step)) and values[0] < step else 0


def _days(expression: CronExpression) -> str:
    """ "" for every day."""
    months = "" if len(expression.months) == 12 else _named(expression.months, lambda month: _MONTHS[month - 1])
    if expression.every_day:
        return f"every day of {months}" if months else ""
    by_week = _weekdays(expression.weekdays) if len(expression.weekdays) < 7 else ""
    by_month = _named(expression.days, _ordinal) if len(expression.days) < 31 else ""
    of = f" of {months}" if months else " of the month"
    if expression.both:
        if by_week and by_month:
            return f"{by_week} that are the {_named(expression.days, _ordinal, 'or')}{of}"
        if by_week or by_month:
            return f"{by_month}{of}" if by_month else by_week + (f" in {months}" if months else "")
        return f"every day of {months}"
    if len(expression.days) == 31 or len(expression.weekdays) == 7:
        return f"every day of {months}"
    parts = [f"{by_month}{of}" if by_month else "", by_week + (f" in {months}" if months else "") if by_week else ""]
    return " and ".join(part for part in parts if part)


def _weekdays(days: tuple[int, ...]) -> str:
    ordered = [day for day in _WEEK if day in days]
    places = [_WEEK.index(day) for day in ordered]
    if len(places) > 2 and places[-1] - places[0] + 1 == len(places):
        return f"{_DAYS[ordered[0]]} to {_DAYS[ordered[-1]]}"
    return _joined([_DAYS[day] for day in ordered])


def _ordinal(number: int) -> str:
    ending = "th" if 10 < number < 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _named(values: tuple[int, ...], name: Callable[[int], str], last: str = "and") -> str:
    """Their names, three and more in a row as "first to last"."""
    parts: list[str] = []
    for begin, end in spans(values):
        if end - begin > 1:
            parts.append(f"{name(begin)} to {name(end)}")
        else:
            parts += [name(value) for value in range(begin, end + 1)]
    return _listed(parts, last)


def _joined(parts: Sequence[str], last: str = "and") -> str:
    return f" {last} ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def _listed(parts: Sequence[str], last: str = "and") -> str:
    """Joined, the middle left out where there are many: "1st, 3rd, 5th, … and 31st"."""
    return _joined(parts if len(parts) <= _MOST_LISTED else [*parts[:3], "…", parts[-1]], last)
