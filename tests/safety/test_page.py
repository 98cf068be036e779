"""The page in a real browser: its own policy holds it, it keeps no secret, and agents' text stays text."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from playwright.async_api import ConsoleMessage, Page, Request, expect
from tests.support.browser_tab import MS, chromium
from tests.support.user_account import Account, Attacker

pytestmark = [pytest.mark.anyio, pytest.mark.e2e, pytest.mark.browser, pytest.mark.timeout(180)]

WATCH = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) =>
  window.violations.push(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`));
"""
HTML = "<img src=x onerror='window.pwned=1'><script>window.pwned=1</script><svg onload='window.pwned=1'>"


@pytest.fixture(scope="module")
def hostile(new_account: Callable[[], Account]) -> Attacker:
    return Attacker(new_account())


class Window:
    """A browser's window with the page in it, and everything it said and asked for."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.said: list[str] = []
        self.asked: list[str] = []
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.said.append(str(error)))
        page.on("request", self._note)

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.said.append(message.text)

    def _note(self, request: Request) -> None:
        self.asked.append(request.url)


@asynccontextmanager
async def window(link: str) -> AsyncGenerator[Window]:
    async with chromium() as browser:
        page = await browser.new_page()
        await page.add_init_script(WATCH)
        seen = Window(page)
        await page.goto(link)
        yield seen


async def shown(page: Page, call: str) -> None:
    """Open a call beside the list."""
    await page.locator(f'[data-call="{call}"]').get_by_role("link").first.click(timeout=MS)
    await expect(page.get_by_role("article", name=f"Call {call}")).to_be_visible(timeout=MS)


async def test_the_page_breaks_no_rule_of_its_own_policy(hostile: Attacker) -> None:
    ran = hostile.account.call(hostile.agent, "execute_command", command="printf '\\033[31mred\\033[0m\\n'")
    write = hostile.account.call(hostile.agent, "write_file", path="/tmp/not-there", content="one\ntwo\n")
    assert write["status"] == "waiting"
    async with window(hostile.account.link()) as seen:
        for call in (hostile.ids["call"], write["call_id"], ran["call_id"]):
            await shown(seen.page, call)
        assert await seen.page.evaluate("window.violations") == []
        assert seen.said == []


async def test_the_page_asks_nobody_but_the_daemon(hostile: Attacker) -> None:
    async with window(hostile.account.link()) as seen:
        await shown(seen.page, hostile.ids["call"])
        own = (f"http://{hostile.account.where}/", f"ws://{hostile.account.where}/", "data:")
        assert len(seen.asked) > 2
        assert [url for url in seen.asked if not url.startswith(own)] == []


async def test_the_page_shows_its_code_and_bearer_nowhere_and_keeps_neither(hostile: Attacker) -> None:
    link = hostile.account.link()
    code = link.partition("#code=")[2]
    async with window(link) as seen:
        await shown(seen.page, hostile.ids["call"])
        kept = await seen.page.evaluate(
            "[location.href, document.cookie, JSON.stringify(sessionStorage), JSON.stringify(localStorage),"
            " document.documentElement.outerHTML, JSON.stringify(history.state)]"
        )
        assert "code" not in kept[0]
        assert kept[1:3] == ["", "{}"]
        assert code not in str(kept)
        assert "earer" not in kept[3]
        assert [url for url in seen.asked if code in url.partition("#")[0]] == []
        assert [url for url in seen.asked if "bearer" in url.lower()] == []


async def test_an_agents_text_is_text_wherever_it_is_shown(hostile: Attacker) -> None:
    call = hostile.account.call(hostile.agent, "execute_command", command=f'echo "{HTML}"')
    waits = hostile.account.call(
        hostile.agent, "write_file", path=f"/tmp/{HTML.replace('/', '')}", content=HTML
    )
    assert waits["status"] == "waiting"
    async with window(hostile.account.link()) as seen:
        for each in (call["call_id"], waits["call_id"]):
            await shown(seen.page, each)
            assert await seen.page.evaluate("window.pwned") is None
            assert await seen.page.evaluate("document.querySelectorAll('img[src=\"x\"]').length") == 0
        assert await seen.page.evaluate("window.violations") == []


@pytest.mark.parametrize(
    "script",
    [
        "document.body.innerHTML = '<b>x</b>'",
        "eval('1')",
        "document.body.append(Object.assign(document.createElement('script'), {src: 'http://127.0.0.1:1/x.js'}))",
    ],
)
async def test_the_policy_is_at_work(hostile: Attacker, script: str) -> None:
    """The control: what breaks a rule is seen, so that the tests above could fail."""
    async with window(hostile.account.link()) as seen:
        found: Any = await seen.page.evaluate(
            "(script) => { const add = document.createElement('script'); let broke = 0;"
            " try { add.text = script; document.head.append(add); } catch { broke = 1; }"
            " return [broke, window.violations.length]; }",
            script,
        )
        assert any(found)
