"""Selection, focus and keys are one thing: a key acts on the call in the detail pane, whatever happens meanwhile."""

import json
import os
import random
from collections.abc import Generator
from pathlib import Path
from typing import Any

import anyio
import pytest
from playwright.async_api import Browser, expect
from tests.support.browser_tab import MS, Tab, signed_in
from tests.support.daemon_home import Home, running_daemon
from tests.support.mcp_client import Agent, agent
from tests.support.person_client import Person

pytestmark = pytest.mark.browser

STEPS = 2000
BATCH = 100
"""Keys between two gusts of arrivals and answers, which blow while the keys are pressed."""
MOST_OPEN = 10
KEYS = (
    *("j", "k", "a", "d") * 6,
    *("Escape",) * 10,
    *("Shift+A", "s", "c", "Enter", "row") * 3,
    *("Shift+D", "Shift+S", "e", "r", "w", "f", "g", "i", "?", "v", "Tab", "ArrowDown"),
)
"""Every key that decides or moves, and those that open what Escape closes. `g i` leads to the inbox; `row` is a click."""


@pytest.fixture(scope="module")
def shared_home() -> Generator[Home]:
    with running_daemon("[command]\nstop_grace = 0.2\n") as home:
        yield home


async def ask(client: Agent, person: Person, *commands: str) -> list[str]:
    """Ask for these commands; the ids of their calls."""
    for command in commands:
        client.ask("execute_command", command=command, wait_seconds=600)
    return [(await person.question(command))["call_id"] for command in commands]


async def shows(tab: Tab, call: str) -> None:
    """The call is in the pane, and its row has the ring."""
    await expect(tab.detail.get_by_role("article", name=f"Call {call}")).to_be_visible(timeout=MS)
    await expect(tab.page.locator("[data-call] > a[aria-current=true]")).to_have_id(f"row-{call}", timeout=MS)


async def is_armed(tab: Tab) -> None:
    allow = tab.detail.get_by_role("button", name="Allow once", exact=True)
    await expect(allow).not_to_have_attribute("aria-disabled", "true", timeout=MS)


async def test_escape_closes_what_is_open_on_top_and_never_changes_the_card(
    shared_home: Home, shared_person: Person, workspace: Path, tab: Tab
) -> None:
    async with agent(shared_home, workspace) as client:
        _, second = await ask(client, shared_person, "tool one", "tool two")
        await tab.open(second)
        await is_armed(tab)
        await tab.page.keyboard.press("w")
        why = tab.detail.get_by_role("button", name="Why am I asked?")
        await expect(why).to_have_attribute("aria-pressed", "true", timeout=MS)
        await tab.page.keyboard.press("Escape")
        await expect(why).to_have_attribute("aria-pressed", "false", timeout=MS)
        for _ in range(3):
            await tab.page.keyboard.press("Escape")
        await shows(tab, second)
        await tab.page.keyboard.press("d")
        assert (await shared_person.settled(second))["status"] == "denied"
        await shared_person.deny("tool one")


async def test_a_card_that_is_decided_elsewhere_stays_with_its_outcome_and_offers_the_next(
    shared_home: Home, shared_person: Person, workspace: Path, tab: Tab
) -> None:
    async with agent(shared_home, workspace) as client:
        first, second, third = await ask(client, shared_person, "tool a", "tool b", "tool c")
        await tab.open(second)
        await shared_person.deny("tool b", "not now")
        await tab.sees(tab.detail.get_by_role("region", name="Outcome"), "not now")
        await shows(tab, second)
        await expect(tab.needs_you.locator(f'[data-call="{second}"]')).to_be_visible(timeout=MS)
        await expect(tab.running.get_by_text("No call is running.")).to_be_visible(timeout=MS)
        await expect(tab.detail.get_by_role("button", name="Next question")).to_be_visible(timeout=MS)
        await tab.page.keyboard.press("a")
        await tab.page.keyboard.press("c")
        await tab.page.keyboard.press("j")
        await shows(tab, third)
        assert [(await shared_person.call(call))["status"] for call in (first, third)] == ["waiting"] * 2
        for call in (first, third):
            await shared_person.cancel(call)


async def test_every_decision_leads_to_the_next_card_or_with_the_setting_off_to_none(
    shared_home: Home, shared_person: Person, workspace: Path, tab: Tab
) -> None:
    """`d`, `a`, `c`, `s`, a denial with words and a rule do the same, which none of them did before."""
    second = {"Shift+D": "Deny and tell the agent", "r": "Allow and make 1 rule"}
    async with agent(shared_home, workspace) as client:
        calls = await ask(client, shared_person, *(f"step{number} run" for number in range(8)))
        await tab.open(calls[0])
        for at, keys in enumerate((["d"], ["a"], ["c"], ["s"], ["Shift+D", "Enter"], ["r", "Control+Enter"])):
            await shows(tab, calls[at])
            await is_armed(tab)
            for key in keys:
                await tab.page.keyboard.press(key)
                if key in second:
                    button = tab.detail.get_by_role("button", name=second[key], exact=True)
                    await expect(button).not_to_have_attribute("aria-disabled", "true", timeout=MS)
        await shows(tab, calls[6])

        await tab.page.keyboard.press("?")
        await tab.page.get_by_label("After a decision, open the next question").uncheck()
        await tab.page.keyboard.press("Escape")
        await is_armed(tab)
        await tab.page.keyboard.press("d")
        await tab.reads(calls[6], "denied")
        await shows(tab, calls[6])
        await shared_person.cancel(calls[7])


WATCH = """() => {
    const wait = window.setTimeout.bind(window);
    window.setTimeout = (act, ms, ...rest) => wait(act, ms === 700 ? 5 : ms, ...rest); // the guard, in quick motion
    const pane = () => document.querySelector("aside article[aria-label^='Call ']");
    const shown = () => pane()?.getAttribute("aria-label").slice("Call ".length) ?? null;
    const ring = () => document.querySelector("[data-call] a[aria-current]")?.closest("[data-call]").dataset.call ?? null;
    const focused = () => document.activeElement?.closest("[data-call]")?.dataset.call ?? null;
    const seen = () => {
        const box = pane()?.getBoundingClientRect();
        const inSight = Boolean(box && box.bottom > 0 && box.top < innerHeight && box.width > 0);
        return { atKey, pane: shown(), ring: ring(), focused: focused(), inSight };
    };
    const among = (all, random) => all[Math.floor(random * all.length)];
    window.acts = [];
    let atKey = null;
    let pressing = false;
    const checked = new Map(); // approvals whose proposal a key had checked, before its answer is sent
    const send = window.fetch;
    window.fetch = (input, init) => {
        const { pathname } = new URL(input instanceof Request ? input.url : input, location.href);
        const [, kind, id] = /^.api.(approvals|calls).([^/]+).(?:answer|cancel|complete)$/.exec(pathname) ?? [];
        const [, asked] = /^.api.approvals.([^/]+).proposal$/.exec(pathname) ?? [];
        if (asked && pressing) checked.set(asked, seen());
        if (kind) window.acts.push({ kind, id, ...(checked.get(id) ?? seen()), pathname });
        checked.delete(id);
        return send(input, init);
    };
    const defaults = {
        Enter: (at) => at.matches("button, a, [role^=menuitem]") && at.click(),
        Escape: () => (document.querySelector(":popover-open")?.hidePopover(), document.querySelector("dialog[open]")?.close()),
        Tab: (at, random) => among([...document.querySelectorAll("a, button, input, textarea")], random)?.focus(),
    };
    const press = (stroke, random) => {
        atKey = shown();
        pressing = true;
        wait(() => (pressing = false), 0);
        const row = among([...document.querySelectorAll("[data-list] [data-call] a")], random);
        if (stroke === "row") return row && (row.focus(), (atKey = shown()), row.click());
        const at = document.activeElement ?? document.body;
        const shiftKey = stroke.startsWith("Shift+");
        const event = new KeyboardEvent("keydown", { key: stroke.replace("Shift+", ""), shiftKey, bubbles: true, cancelable: true });
        if (at.dispatchEvent(event)) defaults[stroke]?.(at, random);
    };
    window.strike = async (strokes) => {
        for (const [stroke, random] of strokes) {
            press(stroke, random);
            await new Promise((go) => wait(go, 12 * random));
        }
    };
}"""
"""Presses keys as a browser would, and notes each request that decides: what was in the pane before the key, and now. An
answer that first checks its proposal is judged by what was seen when it did: the next key may come before the answer."""


@pytest.mark.timeout(400)
async def test_no_key_ever_acts_on_a_call_other_than_the_one_in_the_pane(
    home: Home, person: Person, workspace: Path, browser: Browser
) -> None:
    """Random keys, while calls arrive and are answered from elsewhere."""
    seed = int(os.environ.get("HANDRAIL_SEED", random.randrange(2**32)))
    print(f"HANDRAIL_SEED={seed}")
    dice = random.Random(seed)
    async with agent(home, workspace) as client, signed_in(browser, person) as tab:
        await tab.page.evaluate(WATCH)
        storm = Storm(client, person, dice)
        for _ in range(STEPS // BATCH):
            leave = ("Escape", "Escape", "g", "i")  # fields, dialogs and other views
            keys = [*leave, *dice.choices(KEYS, k=BATCH)]
            async with anyio.create_task_group() as group:
                group.start_soon(storm.blow)
                await tab.page.evaluate("keys => strike(keys)", [[key, dice.random()] for key in keys])
        acts: list[dict[str, Any]] = await tab.page.evaluate("window.acts")
        calls = {one["id"]: one["call_id"] for one in await person.get("approvals", open=False)}

    wrong = [act for act in acts if not is_on_the_shown_call(act, calls)]
    print(f"{len(acts)} keys acted, {storm.asked} calls asked, {storm.answered} were answered from elsewhere")
    assert wrong == [], json.dumps(wrong)
    assert len(acts) > 30
    assert storm.answered > 10


def is_on_the_shown_call(act: dict[str, Any], calls: dict[str, str]) -> bool:
    """The call was in the pane, in sight, with the ring, before the key and when it acted. No other row had the focus."""
    call = calls[act["id"]] if act["kind"] == "approvals" else act["id"]
    is_shown = act["inSight"] and {act["atKey"], act["pane"], act["ring"]} == {call}
    return is_shown and act["focused"] in (None, call)


class Storm:
    """Calls that arrive and end without this tab."""

    def __init__(self, client: Agent, person: Person, dice: random.Random) -> None:
        self._client, self._person, self._dice = client, person, dice
        self.asked = self.answered = 0

    async def blow(self) -> None:
        waiting = await self._person.get("approvals", open=True)
        for approval in waiting:
            if self._dice.random() < 0.4:
                await self._answer(approval)
        for _ in range(self._dice.randint(6, 9) if len(waiting) < MOST_OPEN else 0):
            self.asked += 1
            program = self._dice.choice(
                (f"tool{self.asked} run", f"rm -rf b{self.asked}", f"sleep 60{self.asked}")
            )
            self._client.ask("execute_command", command=program, wait_seconds=600)

    async def _answer(self, approval: dict[str, Any]) -> None:
        """It may have been answered in the tab meanwhile."""
        how = self._dice.choice(("allow", "deny", "cancel"))
        if how == "cancel":
            await self._person.cancel(approval["call_id"])
        else:
            await self._person.answer(approval, how)
        self.answered += 1
