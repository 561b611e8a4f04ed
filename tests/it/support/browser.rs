//! Headless Chromium, controlled by its debugging protocol over pipes. It can only connect to
//! loopback.

use super::{Place, run, wait_for};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// A page in a browser.
pub struct Browser {
    child: Child,
    commands: File,
    answers: Receiver<Vec<u8>>,
    session: Option<String>,
    last: u64,
    /// The console output, exceptions, and log entries such as failed requests.
    pub errors: Vec<String>,
    /// `host:port` of every network request.
    pub hosts: BTreeSet<String>,
}

impl Browser {
    /// Starts Chromium with an empty page. The error contains the reason why it cannot be started
    /// here.
    pub fn start(place: &Place) -> Result<Browser, String> {
        let [commands, answers] = ["commands", "answers"].map(|name| place.path(name));
        run(Command::new("mkfifo").args([&commands, &answers]));
        let script = "exec chromium --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run \
             --disable-background-networking --disable-component-update --disable-sync --proxy-server=127.0.0.1:1 \
             --window-size=1280,900 --user-data-dir=\"$3\" --remote-debugging-pipe about:blank 3<\"$1\" 4>\"$2\"";
        let mut shell = place.clean("sh");
        shell
            .args(["-c", script, "sh"])
            .args([&commands, &answers, &place.path("profile")]);
        let child = shell
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // opening a pipe waits until the shell opens the other end
        let commands = File::options().write(true).open(&commands).unwrap();
        let mut reader = BufReader::new(File::open(&answers).unwrap());
        let (sender, answers) = channel();
        std::thread::spawn(move || {
            let mut message = Vec::new();
            while reader.read_until(0, &mut message).is_ok() && message.pop().is_some() {
                if sender.send(std::mem::take(&mut message)).is_err() {
                    break;
                }
            }
        });
        let errors = Vec::new();
        let hosts = BTreeSet::new();
        let mut browser = Browser {
            child,
            commands,
            answers,
            session: None,
            last: 0,
            errors,
            hosts,
        };
        let target = browser.try_call("Target.createTarget", json!({"url": "about:blank"}))?;
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let attached = browser.call("Target.attachToTarget", attach);
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        for part in ["Page", "Runtime", "Network", "Log"] {
            browser.call(&format!("{part}.enable"), json!({}));
        }
        browser.call(
            "Emulation.setFocusEmulationEnabled",
            json!({"enabled": true}),
        );
        Ok(browser)
    }

    /// Opens a file and waits until it is loaded.
    pub fn open_file(&mut self, file: &std::path::Path) {
        self.open(&format!("file://{}", file.display()));
    }

    /// Opens a URL and waits until it is loaded.
    pub fn open(&mut self, url: &str) {
        let id = self.send("Page.navigate", json!({"url": url})).unwrap();
        let mut is_answered = false;
        let mut is_loaded = false;
        while !(is_answered && is_loaded) {
            let message = self.receive().unwrap();
            is_answered |= message["id"] == id;
            is_loaded |= message["method"] == "Page.loadEventFired";
        }
    }

    /// Enables or disables scripts, from the next page on.
    pub fn set_scripts(&mut self, run: bool) {
        self.call(
            "Emulation.setScriptExecutionDisabled",
            json!({"value": !run}),
        );
    }

    /// Sets the width of the window in pixels, and the colour scheme, `light` or `dark`.
    pub fn set_view(&mut self, width: u32, scheme: &str) {
        let size = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", size);
        let scheme = json!({"name": "prefers-color-scheme", "value": scheme});
        self.call("Emulation.setEmulatedMedia", json!({"features": [scheme]}));
    }

    /// Lets pages of `origin` read and write the clipboard.
    pub fn grant_clipboard(&mut self, origin: &str) {
        let permissions = ["clipboardReadWrite", "clipboardSanitizedWrite"];
        self.call(
            "Browser.grantPermissions",
            json!({"origin": origin, "permissions": permissions}),
        );
    }

    /// Waits until an expression in the page is true.
    pub fn wait_for(&mut self, expression: &str) {
        wait_for(expression, || self.value(expression) == true);
    }

    /// Enters text into the focused element.
    pub fn insert(&mut self, text: &str) {
        self.call("Input.insertText", json!({"text": text}));
    }

    /// The value of an expression in the page; a promise is awaited.
    pub fn value(&mut self, expression: &str) -> Value {
        let ask = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let answer = self.call("Runtime.evaluate", ask);
        assert!(
            answer.get("exceptionDetails").is_none(),
            "{expression}: {answer:#}"
        );
        answer["result"]["value"].clone()
    }

    /// Clicks at a position in the window.
    pub fn click(&mut self, x: f64, y: f64) {
        for kind in ["mousePressed", "mouseReleased"] {
            let event = json!({"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1});
            self.call("Input.dispatchMouseEvent", event);
        }
    }

    /// Presses and releases a key.
    pub fn press(&mut self, key: &str, code: u32, text: &str) {
        for kind in ["keyDown", "keyUp"] {
            let mut event = json!({"type": kind, "key": key, "windowsVirtualKeyCode": code});
            if kind == "keyDown" && !text.is_empty() {
                event["text"] = text.into();
            }
            self.call("Input.dispatchKeyEvent", event);
        }
    }

    fn call(&mut self, method: &str, params: Value) -> Value {
        self.try_call(method, params).unwrap()
    }

    fn try_call(&mut self, method: &str, params: Value) -> Result<Value, String> {
        let id = self.send(method, params)?;
        loop {
            let message = self.receive()?;
            if message["id"] == id {
                assert!(message.get("error").is_none(), "{method}: {message:#}");
                return Ok(message["result"].clone());
            }
        }
    }

    fn send(&mut self, method: &str, params: Value) -> Result<u64, String> {
        self.last += 1;
        let mut message = json!({"id": self.last, "method": method, "params": params});
        if let Some(session) = &self.session {
            message["sessionId"] = session.as_str().into();
        }
        let bytes = message.to_string() + "\0";
        self.commands
            .write_all(bytes.as_bytes())
            .map_err(|error| format!("chromium does not run here: {error}"))?;
        Ok(self.last)
    }

    fn receive(&mut self) -> Result<Value, String> {
        let message = match self.answers.recv_timeout(Duration::from_mins(2)) {
            Ok(message) => message,
            Err(RecvTimeoutError::Disconnected) => {
                return Err("chromium does not run here: it ended at once".to_owned());
            }
            Err(RecvTimeoutError::Timeout) => panic!("chromium sent no message"),
        };
        let message: Value = serde_json::from_slice(&message).unwrap();
        let params = &message["params"];
        match message["method"].as_str().unwrap_or_default() {
            "Runtime.exceptionThrown" => self.errors.push(params["exceptionDetails"].to_string()),
            "Runtime.consoleAPICalled" => self.errors.push(params["args"].to_string()),
            "Log.entryAdded" => self.errors.push(params["entry"].to_string()),
            "Network.requestWillBeSent" => {
                let url = params["request"]["url"].as_str().unwrap();
                let authority = url
                    .split_once("://")
                    .and_then(|(_, rest)| rest.split('/').next());
                self.hosts
                    .extend(authority.filter(|host| !host.is_empty()).map(str::to_owned));
            }
            _ => {}
        }
        Ok(message)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // `Browser.close` ends all processes of the browser
        let _ = self.send("Browser.close", json!({}));
        while self.answers.recv_timeout(Duration::from_secs(20)).is_ok() {}
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
