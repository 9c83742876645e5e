//! As much of WebDriver (W3C, with chromedriver's additions) as looking at a page takes: one session.

use anyhow::{Context, Result, bail};
use minreq::{Method, Request};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A browser with one window.
pub struct Browser {
    driver: Child,
    port: u16,
    session: String,
}

/// Where chromedriver says which port it got.
const STARTED: &str = "successfully on port ";

impl Browser {
    /// Starts chromedriver and a headless Chromium whose profile lives in `directory`.
    pub fn start(driver: &Path, chromium: &Path, directory: &Path) -> Result<Browser> {
        let mut child = Command::new(driver)
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| driver.display().to_string())?;
        let output = child.stdout.take().context("chromedriver's output")?;
        let mut browser = Browser { driver: child, port: 0, session: String::new() };
        let mut lines = BufReader::new(output).lines();
        browser.port = lines
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| line.split(STARTED).nth(1)?.trim_end_matches('.').parse().ok())
            .context("chromedriver named no port")?;
        // It goes on talking; nobody listens, and a full pipe would stop it.
        std::thread::spawn(move || lines.for_each(drop));
        let profile = directory.join("profile");
        let options = json!({
            "binary": chromium,
            "args": [
                "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
                "--disable-background-networking", "--disable-component-update", "--disable-sync",
                "--disable-dev-shm-usage", "--hide-scrollbars",
                format!("--user-data-dir={}", profile.display()),
            ],
        });
        let capabilities = json!({
            "browserName": "chrome",
            "goog:chromeOptions": options,
            "goog:loggingPrefs": { "browser": "ALL" },
        });
        let asked = json!({"capabilities": {"alwaysMatch": capabilities}});
        let answer = browser.request(Method::Post, "/session", &asked)?;
        browser.session = answer["sessionId"].as_str().context("no session")?.to_owned();
        Ok(browser)
    }

    fn request(&self, method: Method, path: &str, body: &Value) -> Result<Value> {
        let url = format!("http://127.0.0.1:{}{path}", self.port);
        let request = Request::new(method, url).with_timeout(120).with_json(body)?;
        let mut answer: Value = request.send()?.json()?;
        let value = answer["value"].take();
        if let Some(error) = value["error"].as_str() {
            bail!("{path}: {error}: {}", value["message"].as_str().unwrap_or_default());
        }
        Ok(value)
    }

    fn post(&self, path: &str, body: &Value) -> Result<Value> {
        self.request(Method::Post, &format!("/session/{}/{path}", self.session), body)
    }

    /// Opens a page.
    pub fn open(&self, url: &str) -> Result<()> {
        self.post("url", &json!({"url": url})).map(drop)
    }

    /// A command of the DevTools protocol.
    pub fn devtools(&self, command: &str, parameters: Value) -> Result<Value> {
        self.post("goog/cdp/execute", &json!({"cmd": command, "params": parameters}))
    }

    /// What a function body returns.
    pub fn evaluate(&self, script: &str) -> Result<Value> {
        self.evaluate_with(script, json!([]))
    }

    /// The same for those arguments.
    pub fn evaluate_with(&self, script: &str, arguments: Value) -> Result<Value> {
        self.post("execute/sync", &json!({"script": script, "args": arguments}))
    }

    /// Clicks the element that a CSS selector finds first, as a user would: it has to be visible.
    pub fn click(&self, selector: &str) -> Result<()> {
        let click = || {
            let named = json!({"using": "css selector", "value": selector});
            let found = self.post("element", &named)?;
            let id = found.as_object().and_then(|object| object.values().next()?.as_str());
            let id = id.context("an element without a name")?;
            self.post(&format!("element/{id}/click"), &json!({})).map(drop)
        };
        click().with_context(|| selector.to_owned())
    }

    /// Presses and lets go of a key, wherever the focus is.
    pub fn key(&self, key: char) -> Result<()> {
        let actions =
            [json!({"type": "keyDown", "value": key}), json!({"type": "keyUp", "value": key})];
        let source = json!({"type": "key", "id": "keyboard", "actions": actions});
        self.post("actions", &json!({"actions": [source]})).map(drop)
    }

    /// What the console said since it was last asked.
    pub fn console(&self) -> Result<Vec<String>> {
        let entries = self.post("se/log", &json!({"type": "browser"}))?;
        let said = |entry: &Value| format!("{}: {}", entry["level"], entry["message"]);
        Ok(entries.as_array().into_iter().flatten().map(said).collect())
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !self.session.is_empty() {
            let _ = self.request(Method::Delete, &format!("/session/{}", self.session), &json!({}));
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}
