"""Pages of the report in headless Chromium: every control used, nothing on the console, nothing asked of the
network, no sideways scrolling on a phone, and pictures for people to look at.

    /usr/bin/python3 look.py PAGE...

Pictures go beside the page. Ends with status 1 and a line where something is wrong.
"""

import base64
import sys
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

WIDTHS = [(1280, False), (360, True)]

# Elements wider than the window, beside the window's own overhang.
SIDEWAYS = """
const w = document.documentElement.clientWidth;
const wide = [...document.querySelectorAll('body *')].filter(e => {
    if (e.closest('svg, .skip, .wide table')) return false;
    const r = e.getBoundingClientRect();
    return r.width > 1 && r.right > w + 1;
});
return [document.documentElement.scrollWidth - w, wide.slice(0, 5).map(e => e.outerHTML.slice(0, 120))];
"""
CLIP = """
const e = document.documentElement;
return { x: 0, y: 0, scale: 1, width: e.clientWidth, height: Math.min(9000, e.scrollHeight) };
"""
DARK = "return getComputedStyle(document.body).backgroundColor.match(/[0-9]+/)[0] < 128"
LOADED = "return performance.getEntriesByType('resource').map(e => e.name)"
UNFOLD = """
const all = [...document.querySelectorAll('details')];
all.forEach(d => d.open = true);
return all.length;
"""
NUMBER_TOGGLES = """
document.querySelectorAll('.legend details').forEach(d => d.open = true);
document.querySelectorAll('.legend input').forEach((e, i) => e.dataset.at = i);
return document.querySelectorAll('.legend input').length;
"""
# Returns whether a toggle is checked, the marks of its series, and how many of them are seen.
TOGGLE = """
const e = document.querySelector(`.legend input[data-at='${arguments[0]}']`);
const marks = [...e.closest('.plot').querySelectorAll('svg.chart .s' + e.className.slice(1))];
return [e.checked, marks.length, marks.filter(m => getComputedStyle(m).display !== 'none').length];
"""
# Its tag, its class, whether it shows that it has the focus, its name.
FOCUSED = """
const e = document.activeElement;
const s = getComputedStyle(e);
return [e.tagName, e.className.baseVal ?? e.className,
    s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 2,
    e.getAttribute('aria-label') ?? e.textContent ?? ''];
"""


def ensure(holds, what):
    if not holds:
        raise SystemExit(what)


def started():
    """Chromium with one window, its profile in a directory that the driver removes."""
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for word in (
        "headless no-sandbox disable-gpu no-first-run disable-background-networking disable-component-update "
        "disable-sync disable-dev-shm-usage hide-scrollbars"
    ).split():
        options.add_argument(f"--{word}")
    return webdriver.Chrome(service=webdriver.chrome.service.Service("/usr/bin/chromedriver"), options=options)


def opened(browser, page, width, mobile, scheme):
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": mobile}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    browser.get(page.as_uri())


def is_silent(browser, where):
    """Nothing on the console, nothing loaded but the page."""
    said = [f"{entry['level']}: {entry['message']}" for entry in browser.get_log("browser")]
    ensure(not said, f"{where}: the console says {said}")
    loaded = browser.execute_script(LOADED)
    ensure(set(loaded) <= {"data:,"}, f"{where}: the page loads {loaded}")


def fits(browser, where):
    over, wide = browser.execute_script(SIDEWAYS)
    ensure(over <= 0 and not wide, f"{where}: wider than the window: {over}, {wide}")


def look(browser, page):
    """Two widths, both colour schemes: a picture each, and what must hold in all of them."""
    for width, mobile in WIDTHS:
        for scheme in ["light", "dark"]:
            opened(browser, page, width, mobile, scheme)
            name = f"{page.stem}-{width}-{scheme}"
            is_silent(browser, name)
            fits(browser, name)
            ground = "dark" if browser.execute_script(DARK) else "light"
            ensure(ground == scheme, f"{name}: the ground is {ground}")
            wanted = {"format": "png", "captureBeyondViewport": True, "clip": browser.execute_script(CLIP)}
            kept(browser, "Page.captureScreenshot", wanted, page.with_name(f"{name}.png"))
            # With everything unfolded as well, which is more than anybody would do at once.
            ensure(browser.execute_script(UNFOLD) > 3, f"{name}: too few details")
            fits(browser, f"{name}, unfolded")
    opened(browser, page, *WIDTHS[0], "light")


def kept(browser, command, options, file):
    file.write_bytes(base64.b64decode(browser.execute_cdp_cmd(command, options)["data"]))


def use_controls(browser, page):
    """The theme, every toggle of every legend, the folded parts."""

    def click(selector):
        browser.find_element(By.CSS_SELECTOR, selector).click()

    for theme, dark in [("dark", True), ("light", False), ("dark", True), ("auto", False)]:
        click(f"#theme-{theme}")
        ensure(browser.execute_script(DARK) == dark, f"{page}: theme {theme} does nothing")
    toggles = browser.execute_script(NUMBER_TOGGLES)
    ensure(toggles >= 2, f"{page}: {toggles} toggles")
    for toggle in [toggle for toggle in range(toggles) for _ in range(2)]:
        before = browser.execute_script(TOGGLE, toggle)
        click(f".legend input[data-at='{toggle}']")
        checked, marks, seen = after = browser.execute_script(TOGGLE, toggle)
        ensure(before[0] != checked, f"{page}: toggle {toggle} cannot be clicked")
        right = marks > 0 and seen == (marks if checked else 0)
        ensure(right, f"{page}: toggle {toggle}: {before} then {after}")
    for fold in ["details.numbers", "details.group"]:
        click(f"{fold} > summary")
        is_open = browser.execute_script(f"return document.querySelector('{fold}').open")
        ensure(is_open, f"{page}: {fold} stays folded")
    is_silent(browser, page)


def use_filters(browser, page):
    """Each choice shows the rows of its class and no others; a row unfolds to its cells."""
    shown = "return [...document.querySelectorAll('.row')].filter(e => e.getClientRects().length).map(e => e.className)"
    every = browser.execute_script(shown)
    ensure(len(every) > 100, f"{page}: {len(every)} rows")
    for choice in browser.find_elements(By.CSS_SELECTOR, ".filter input:not([id$=-all])"):
        group, kind = choice.get_attribute("id").split("-", 1)
        choice.click()
        wanted = [row for row in every if kind in row.split()]
        ensure(browser.execute_script(shown) == wanted, f"{page}: filter {kind} shows other rows")
        browser.find_element(By.ID, f"{group}-all").click()
    browser.find_element(By.CSS_SELECTOR, ".row > summary").click()
    cells = browser.find_elements(By.CSS_SELECTOR, ".row[open] td")
    ensure(cells and cells[0].is_displayed(), f"{page}: a row has no cells")
    browser.find_element(By.ID, "f3-zen1").click()
    cpus = [cpu for cpu in browser.find_elements(By.CSS_SELECTOR, ".row[open] .cpu") if cpu.is_displayed()]
    ensure(len(cpus) == 1, f"{page}: {len(cpus)} CPUs of one")
    is_silent(browser, page)


def use_keyboard(browser, page):
    """From control to control with Tab; each shows that it has the focus; Space and Enter work."""

    def press(key):
        ActionChains(browser).send_keys(key).perform()

    browser.execute_script("location.reload()")
    seen, used = set(), set()
    for step in range(60):
        press(Keys.TAB)
        tag, kind, shows, name = at = browser.execute_script(FOCUSED)
        ensure(step > 0 or kind == "skip", f"{page}: the first stop is {at}")
        if tag == "BODY":
            break
        ensure(shows, f"{page}: the focus does not show on {at}")
        ensure(len(name) > 5 or tag != "g", f"{page}: a mark without a name: {at}")
        seen.add(tag.lower())
        if tag == "INPUT" and kind.startswith("t"):
            state, key = "checked", Keys.SPACE
        elif tag == "SUMMARY":
            state, key = "parentElement.open", Keys.ENTER
        else:
            continue
        if tag not in used:
            used.add(tag)
            state = f"return document.activeElement.{state}"
            before = browser.execute_script(state)
            press(key)
            ensure(browser.execute_script(state) != before, f"{page}: the key changes nothing on {at}")
            press(key)
    missing = {"a", "input", "summary", "pre", "g"} - seen
    ensure(not missing, f"{page}: Tab never stops at {missing}: {seen}")
    ensure(len(used) == 2, f"{page}: no toggle or no summary was reached: {seen}")


def main():
    pages = [Path(word).resolve() for word in sys.argv[1:]]
    browser = started()
    try:
        for page in pages:
            look(browser, page)
            if browser.find_elements(By.CSS_SELECTOR, ".filter"):
                use_filters(browser, page)
            else:
                use_controls(browser, page)
                use_keyboard(browser, page)
            # It prints, light on paper whatever the screen.
            kept(browser, "Page.printToPDF", {"printBackground": True}, page.with_suffix(".pdf"))
    finally:
        browser.quit()


if __name__ == "__main__":
    main()
