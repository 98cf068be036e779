"""A phone in Chromium over TLS: pairs by the code, gets a real push message, answers, and is signed out."""

import json
import re
from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from typing import Any, cast

import pytest
from anyio import to_thread
from playwright.async_api import Browser, BrowserContext, Page, async_playwright, expect
from tests.support.axe import find_problems
from tests.support.browser_tab import MS, QUIET, chromium, find_full_chromium
from tests.support.daemon_home import Home, eventually, free_port, running_daemon, until
from tests.support.gcm import gcm_server
from tests.support.mcp_client import agent
from tests.support.person_client import Json, Person
from tests.support.push_service import push_service

pytestmark = pytest.mark.browser

REVOKED_MS = 3000
"""A revocation closes the sockets within a second; the rest is for a busy machine."""
SUBSCRIBE = """(subscription) => {
  const made = { toJSON: () => subscription, unsubscribe: async () => true };
  PushManager.prototype.getSubscription = async () => null;
  PushManager.prototype.subscribe = async ({ applicationServerKey }) => applicationServerKey ? made : null;
}"""
"""The browser without windows has no push client: the page gets a subscription of the local service instead."""
LOCAL_ENDPOINT = """(url) => {
  const toJSON = PushSubscription.prototype.toJSON;
  PushSubscription.prototype.toJSON = function () {
    const made = toJSON.call(this);
    return { ...made, endpoint: `${url}/send/${made.endpoint.split("/").at(-1)}` };
  };
}"""
"""The host name of Chromium's push service is compiled in: only that is replaced."""
PHONE: Any = {
    "viewport": {"width": 360, "height": 740},
    "is_mobile": True,
    "has_touch": True,
    "ignore_https_errors": True,
}
SMALL = """() => [...document.querySelectorAll("button, select, summary, input, nav a, [role=menuitem], [role=tab]")]
  .filter((one) => one.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true }) && !one.closest(".unseen, .xterm"))
  .map((one) => [one.matches("[type=checkbox], [type=radio]") ? one.closest("label") ?? one : one, one])
  .map(([box, one]) => [box.getBoundingClientRect(), one])
  .filter(([{ width, height }]) => width > 0 && (width < 43.5 || height < 43.5))
  .map(([{ width, height }, one]) => `${Math.round(width)}x${Math.round(height)} ${one.outerHTML.slice(0, 160)}`)"""


@pytest.fixture(scope="module")
def shared_home() -> Generator[Home]:
    """A daemon of this module's own, to which no door was launched: its launcher would count as an agent."""
    with running_daemon() as home:
        yield home


@pytest.fixture(scope="module")
async def browser() -> AsyncGenerator[Browser]:
    """A browser that accepts the certificate: without that, it registers no service worker."""
    async with chromium("--ignore-certificate-errors") as browser:
        yield browser


@pytest.fixture(scope="module")
async def code(shared_person: Person) -> Json:
    return await shared_person.post("devices/listener", {"address": "127.0.0.1", "port": free_port()})


@pytest.fixture(scope="module")
async def phone(browser: Browser, code: Json) -> AsyncGenerator[BrowserContext]:
    context = await browser.new_context(**PHONE)
    await context.grant_permissions(["notifications"], origin=code["devices"]["url"])
    yield context
    await context.close()


@pytest.fixture(scope="module")
async def page(phone: BrowserContext, code: Json) -> Page:
    """The page of a phone that was paired by typing the code."""
    page = await phone.new_page()
    page.set_default_timeout(MS)
    await page.goto(code["devices"]["url"])
    field = page.get_by_label("Pairing code")
    await field.fill("wrong")
    await page.get_by_role("button", name="Pair").tap()
    await expect(page.get_by_text("This code is not valid")).to_be_visible()
    assert await page.evaluate(SMALL) == []
    assert await find_problems(page, "pairing", [360]) == []
    await field.fill(code["code"].lower())
    await page.get_by_role("button", name="Pair").tap()
    await expect(page.get_by_role("navigation", name="Views")).to_be_visible()
    return page


async def test_every_target_is_large_enough_for_a_finger(
    page: Page, shared_person: Person, workspace: Path
) -> None:
    async with agent(shared_person.home, workspace, shared_person, transport="http") as client:
        asked = client.ask("write_file", path="a.txt", content="one\n")
        question = await shared_person.question("a.txt")
        url = page.url.rstrip("/")
        small: dict[str, Any] = {}
        problems: list[str] = []
        for path in (
            "",
            "/calls",
            "/terminals",
            "/rules",
            "/servers",
            "/settings",
            "/threads",
            f"/c/{question['call_id']}",
        ):
            await page.goto(f"{url}{path}")
            await expect(page.get_by_role("main")).to_be_attached()
            if path.startswith("/c/"):
                await expect(page.get_by_role("button", name="Allow once")).to_be_visible()
            found = await page.evaluate(SMALL)
            small |= {path: found} if found else {}
            problems += await find_problems(page, path, [360])
        await shared_person.deny("a.txt")
        await asked.told()
    assert (small, problems) == ({}, [])
    await page.goto(url)


async def test_a_terminal_is_readable_and_has_the_keys_that_a_phone_lacks(
    page: Page, shared_person: Person
) -> None:
    body = {"command": ["cat", "-v"], "cols": 100, "rows": 30}
    terminal = (await shared_person.post("terminals", body))["id"]
    home = page.url
    await page.goto(f"{home.rstrip('/')}/x/{terminal}")
    rows = page.locator(".xterm-rows")
    await expect(rows).to_be_visible()
    assert float((await rows.evaluate("one => getComputedStyle(one).fontSize")).removesuffix("px")) >= 12
    keys = page.get_by_role("toolbar", name="Keys")
    assert await page.evaluate(SMALL) == []
    await keys.get_by_role("button", name="Pipe").tap()
    await keys.get_by_role("button", name="Left").tap()
    await keys.get_by_role("button", name="Ctrl").tap()
    await expect(keys.get_by_role("button", name="Ctrl")).to_have_attribute("aria-pressed", "true")
    await page.keyboard.type("g")
    await keys.get_by_role("button", name="Enter").tap()
    await expect(rows).to_contain_text("|^[[D^G")
    await keys.get_by_role("button", name="Larger text").tap()
    await expect(rows).to_have_css("font-size", "13px")
    await shared_person.post(f"terminals/{terminal}/close")
    await page.goto(home)


async def test_a_phone_gets_a_push_message_answers_and_is_signed_out(
    phone: BrowserContext, page: Page, shared_person: Person, workspace: Path
) -> None:
    with push_service() as service:
        await page.evaluate(SUBSCRIBE, service.subscription)
        await switch_push_on(page)
        await hide(page)
        async with agent(shared_person.home, workspace, shared_person, transport="http") as client:
            asked = client.ask("write_file", path="secret-name.txt", content="one\n")
            question = await shared_person.question("secret-name")
            message = await to_thread.run_sync(service.wait)
            assert json.loads(message) == {
                "title": f"A call needs you, {question['risk']} risk",
                "path": f"/c/{question['call_id']}",
            }
            await deliver(phone, page, message)
            await expect(page.get_by_role("article", name=f"Call {question['call_id']}")).to_be_visible()
            others = page.get_by_role(
                "button", name=re.compile("^(Deny and tell|Allow for session|Always allow)")
            )
            await expect(others).to_have_count(3)
            tops = await others.evaluate_all("all => all.map(one => one.getBoundingClientRect().top)")
            assert len({*tops}) == 1, "one line: the rest of the screen is for the diff"
            await page.get_by_role("button", name="Allow once").tap()
            assert (await asked.told()).status == "done"
        late = await shared_person.answer(question, "deny")
        assert late.status_code == 409
        assert late.json()["detail"].startswith("Already allowed by a person on the phone, ")

    (device,) = [row for row in await shared_person.get("sign-ins") if row["device"]]
    await page.reload()
    await expect(page.get_by_role("navigation", name="Views")).to_be_visible()
    await shared_person.ask("DELETE", f"sign-ins/{device['id']}")
    await expect(page.get_by_role("heading", name="Pair this device")).to_be_visible(timeout=REVOKED_MS)
    await page.reload()
    await expect(page.get_by_role("heading", name="Pair this device")).to_be_visible()

    cached = await page.evaluate(
        "async () => (await Promise.all((await caches.keys()).map(async (name) => (await (await caches.open(name)).keys())"
        ".map(({ url }) => new URL(url).pathname)))).flat()"
    )
    assert sorted(cached) == ["/icon-192.png", "/offline.html"], "nothing of Handrail is stored"
    await shared_person.ask("DELETE", "devices/listener")
    await page.reload()
    await expect(page.get_by_role("heading", name="Handrail is not reachable")).to_be_visible()


@pytest.mark.skipif(find_full_chromium() is None, reason="only a whole Chromium subscribes to push messages")
async def test_a_real_push_message_wakes_a_phone_whose_page_is_closed(
    shared_person: Person, workspace: Path, tmp_path: Path
) -> None:
    """The browser's own push client, over a messaging server on loopback, which cannot read what it carries."""
    code = await shared_person.post("devices/listener", {"address": "127.0.0.1", "port": free_port()})
    origin = code["devices"]["url"].rstrip("/")
    async with async_playwright() as playwright:
        with gcm_server(tmp_path) as gcm:
            phone = await playwright.chromium.launch_persistent_context(
                tmp_path / "profile",
                executable_path=find_full_chromium(),
                ignore_default_args=["--headless=old", "--disable-background-networking"],
                args=[*QUIET[:2], "--headless=new", "--ignore-certificate-errors", *gcm.flags],
                **PHONE,
            )
            await phone.grant_permissions(["notifications"], origin=origin)
            page = await phone.new_page()
            await page.goto(code["url"])
            await expect(page.get_by_role("navigation", name="Views")).to_be_visible()
            await page.evaluate(LOCAL_ENDPOINT, gcm.url)
            await switch_push_on(page)
            await page.goto("about:blank")  # Handrail is open nowhere
            async with agent(shared_person.home, workspace, shared_person, transport="http") as client:
                asked = client.ask("write_file", path="another-secret.txt", content="one\n")
                question = await shared_person.question("another-secret")
                await until(lambda: bool(gcm.bodies))
                assert b"risk" not in gcm.bodies[0], "the message is encrypted for this browser"

                (worker,) = phone.service_workers or [await phone.wait_for_event("serviceworker")]

                async def look() -> list[str]:
                    return await worker.evaluate(
                        "registration.getNotifications().then((all) => all.map(({ title }) => title))"
                    )

                assert await eventually(look) == [f"A call needs you, {question['risk']} risk"]
                await page.goto(origin)
                await expect(page.get_by_role("navigation", name="Views")).to_be_visible()
                await worker.evaluate(
                    "registration.getNotifications().then(([notification]) =>"
                    " self.dispatchEvent(new NotificationEvent('notificationclick', { notification })))"
                )
                await expect(page.get_by_role("article", name=f"Call {question['call_id']}")).to_be_visible()
                await page.get_by_role("button", name="Allow once").tap()
                assert (await asked.told()).status == "done"
            await phone.close()
    await shared_person.ask("DELETE", "devices/listener")


async def switch_push_on(page: Page) -> None:
    """In the menu, once the service worker is there."""
    await page.wait_for_function(
        "navigator.serviceWorker.getRegistration().then((one) => one?.active != null)"
    )
    await page.get_by_role("button", name="Notifications").tap()
    item = page.get_by_role("menuitemcheckbox", name="Push messages on this device")
    await item.tap()
    await page.get_by_role("button", name="Notifications").tap()
    await expect(item).to_be_checked()
    await page.keyboard.press("Escape")


async def hide(page: Page) -> None:
    """As when the phone is locked."""
    await page.evaluate(
        "() => { Object.defineProperty(document, 'visibilityState', { value: 'hidden', configurable: true });"
        "document.dispatchEvent(new Event('visibilitychange')) }"
    )


async def deliver(phone: BrowserContext, page: Page, message: str) -> None:
    """Hand the decrypted message to the service worker, as the browser's push client does; then tap the notification.

    Chromium without windows shows no notifications, so what would be shown is caught.
    """
    session = cast("Any", await phone.new_cdp_session(page))
    registrations: list[Any] = []

    def note_registrations(told: Json) -> None:
        registrations.extend(told["registrations"])

    session.on("ServiceWorker.workerRegistrationUpdated", note_registrations)
    await session.send("ServiceWorker.enable")
    origin = page.url.split("/c/")[0].rstrip("/")
    await until(lambda: bool(registrations))
    known = next(one["registrationId"] for one in registrations if not one["isDeleted"])
    (worker,) = phone.service_workers
    await worker.evaluate(
        "self.registration.__proto__.showNotification = async (title, options) => void (self.shown = { title, ...options })"
    )
    await session.send(
        "ServiceWorker.deliverPushMessage", {"origin": origin, "registrationId": known, "data": message}
    )

    async def look() -> Json | None:
        return await worker.evaluate("self.shown ?? null")

    shown = await eventually(look)
    assert (shown["title"], shown["tag"]) == (json.loads(message)["title"], "handrail")
    await worker.evaluate(
        """() => {
          const notification = { data: self.shown.data, close() {} };
          self.dispatchEvent(Object.assign(new Event("notificationclick"), { notification, waitUntil() {} }));
        }"""
    )
