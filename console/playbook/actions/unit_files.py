"""The unit that an entry becomes is installed: what `worktop schedules translate` shows, or as it was edited."""

from __future__ import annotations

from console.actions.install import SYSTEM_UNITS
from console.playbook.kinds import Action, Given, Inputs
from console.playbook.lines import one_entry
from console.playbook.model import Draft, Settings, Shown
from console.playbook.settings import Input
from console.schedules.model import Explained
from console.text import mask

_OWN_UNITS = "~/.config/systemd/user"


async def _install(given: Given, inputs: Inputs) -> Shown:
    role = inputs.text("role")
    template = (await given.status(role)).role.template if role else ""
    if template and not inputs.truth("replace") and await installed(given, template):
        found: Settings = {"unit": template}
        return Shown(nothing=f"{template} is installed, and is left as it is", found=found)
    listed = one_entry(await given.actions.schedules(), inputs.text("entry"))
    told = (await given.host.translate((listed.name,)))[0]
    files = _files(given, told.listed.explained, template)
    if not files:
        return Shown(
            refused=(f"no unit can be made of {listed.name}: {told.listed.explained.kind}",), evidence=told.failed
        )
    drafts = tuple(given.drafts.get(each.path, each) for each in files)
    plan = await given.actions.plan_install([(each.path, each.text, each.mode) for each in drafts], role)
    unit = template or next(each.path.rpartition("/")[2] for each in files if each.path.endswith(".service"))
    explained = told.listed.explained
    return Shown(
        plan=plan,
        facts=tuple(mask(text) for text in (*told.held, *(f"NOT: {text}" for text in told.failed))),
        evidence=tuple(mask(text) for text in (*(each.text for each in explained.evidence), *explained.warnings)),
        found={
            "unit": unit,
            "timers": tuple(name for name, _ in explained.units if name.endswith(".timer")),
        },
        drafts=drafts,
    )


async def installed(given: Given, template: str) -> bool:
    """systemd knows the template, wherever it lies. HostError."""
    name = template.replace("@.", "@1.", 1)
    return dict((await given.host.unit_detail(name)).properties).get("LoadState") == "loaded"


def _files(given: Given, explained: Explained, template: str) -> tuple[Draft, ...]:
    """With the paths they are installed under. A unit that the configuration calls otherwise is called as it says."""
    hello = given.host.facts.hello
    folder = _OWN_UNITS if hello is not None and hello.manager == "user" else SYSTEM_UNITS
    made = [name for name, _ in explained.units if name.endswith("@.service")]
    names = {made[0]: template} if template and len(made) == 1 else {}
    units = [Draft(path=f"{folder}/{names.get(name, name)}", text=text) for name, text in explained.units]
    for path, text, mode in explained.extras:
        first, slash, rest = path.partition("/")
        named = f"{names.get(first.removesuffix('.d'), first.removesuffix('.d'))}.d" if slash and first else first
        whole = path if path.startswith("/") else f"{folder}/{named}/{rest}"
        units.append(Draft(path=whole, text=text, mode=mode))
    return tuple(units)


INSTALL = Action(
    "install",
    "the unit that an entry becomes is installed; one that is there is left as it is",
    _install,
    {
        "entry": Input(required=True, about="as worktop schedules names it"),
        "role": Input(about="whose workers it becomes; without it the entry becomes a service and a timer"),
        "replace": Input(kind="truth", about="also a unit that is installed"),
    },
    finds=("unit", "timers"),
)
