//! Hand-written servers, each with a fault that occurs in real servers.

use std::{
    fs,
    io::{self, Lines, StdinLock, Write},
    process, thread,
    time::Duration,
};

use serde_json::{Value, json};

/// The response to one request.
enum Reply {
    Result(Value),
    Error(i64, String),
    /// This text, in which `$ID` is replaced with the request's id.
    Text(String),
    /// No answer at all.
    Nothing,
    /// The response of a correct server with the older protocol.
    Usual,
}

impl Reply {
    fn error(code: i64, message: &str) -> Self {
        Self::Error(code, message.to_owned())
    }
}

pub(crate) fn serve(kind: &str) {
    let mut server = Server {
        lines: io::stdin().lines(),
        noise: false,
        tools: vec!["work"],
    };
    if std::env::var("TOOLS").is_ok_and(|tools| tools == "work,read") {
        server.tools.push("read");
    }
    match kind {
        "mute" => server.answer(|_, _| Reply::Nothing),
        "dead" => {
            complain("cannot open the database\nbye");
            process::exit(3);
        }
        "noisy" => {
            server.noise = true;
            server.noise();
            server.answer(|_, _| Reply::Usual);
        }
        // Servers with the older protocol that handle the unknown request `server/discover` badly.
        "leaves at discover" => server.on("server/discover", |_| process::exit(1)),
        "mute at discover" => server.on("server/discover", |_| Reply::Nothing),
        "odd at discover" => server.on("server/discover", |_| {
            Reply::Result(json!({"hello": "world"}))
        }),
        kind if kind.contains("list") => server.serve_list(kind),
        "odd names" => {
            server.tools = vec!["find.customer", "find/customer", "naïve", "find_customer"];
            server.answer(|_, _| Reply::Usual);
        }
        "odd result" => server.on("tools/call", |_| {
            Reply::Result(json!({
                "content": [{"type": "text", "text": "one"}, {"type": "hologram", "beams": 3}],
                "resultType": "complete",
            }))
        }),
        // The process exits in its first call. After a restart it works.
        "dies once" => {
            let mark = std::env::var("MARK").unwrap();
            server.answer(|method, _| match method {
                "tools/call" if fs::metadata(&mark).is_err() => {
                    fs::write(&mark, "").unwrap();
                    process::exit(9);
                }
                _ => Reply::Usual,
            });
        }
        "tells secrets" => {
            let token = std::env::var("TOKEN").unwrap();
            complain(&format!("connecting with {token}"));
            // The shell that starts the server puts its arguments into this variable.
            if let Ok(argument) = std::env::var("ARGUMENT") {
                complain(&format!("asked for {argument}"));
            }
            server.on("tools/call", |_| {
                Reply::error(-32603, &format!("{token} is not accepted"))
            });
        }
        "plain" => server.answer(|_, _| Reply::Usual),
        kind if kind.contains("call") => server.serve_call(kind),
        "asks back" => server.asks_back(),
        // The server stays when its input ends. The shell script before it also ignores `SIGTERM`.
        "stubborn" => {
            server.answer(|_, _| Reply::Usual);
            loop {
                thread::park();
            }
        }
        other => panic!("no server is {other}"),
    }
}

/// Creates a tool. It is read-only if its name begins with `read`.
fn tool(name: &str) -> Value {
    let mut tool = json!({"name": name, "description": "", "inputSchema": {"type": "object"}});
    if name.starts_with("read") {
        tool["annotations"] = json!({"readOnlyHint": true});
    }
    tool
}

/// Returns one of three pages. The second one contains an invalid tool.
fn page(cursor: Option<&str>) -> Value {
    match cursor {
        None => json!({"tools": [tool("a"), tool("b")], "nextCursor": "two"}),
        Some("two") => json!({
            "tools": [tool("c"), {"name": "bad", "inputSchema": null}, tool("d")],
            "nextCursor": "three",
        }),
        Some(_) => json!({"tools": [tool("e")]}),
    }
}

/// Sends thousands of unrequested notifications of every kind.
fn flood(out: &mut impl Write, params: &Value) {
    let token = &params["_meta"]["progressToken"];
    for n in 0..5000 {
        for (method, params) in [
            ("notifications/tools/list_changed", json!({})),
            (
                "notifications/message",
                json!({"level": "debug", "data": n}),
            ),
            (
                "notifications/progress",
                json!({"progressToken": token, "progress": n}),
            ),
            (
                "notifications/progress",
                json!({"progressToken": "nobody's", "progress": n}),
            ),
            (
                "notifications/cancelled",
                json!({"requestId": 10_000_000 + n}),
            ),
            ("notifications/nonsense", json!({"n": n})),
        ] {
            let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
            writeln!(out, "{message}").unwrap();
        }
    }
    out.flush().unwrap();
}

fn complain(text: &str) {
    let mut out = io::stderr().lock();
    out.write_all(text.as_bytes()).unwrap();
    out.write_all(b"\n").unwrap();
}

struct Server {
    lines: Lines<StdinLock<'static>>,
    noise: bool,
    tools: Vec<&'static str>,
}

impl Server {
    /// Serves with a fault in the tool list.
    fn serve_list(&mut self, kind: &str) {
        match kind {
            "never lists" => self.on("tools/list", |_| Reply::Nothing),
            "refuses to list" => self.on("tools/list", |_| {
                Reply::error(-32603, "table `tools` is locked")
            }),
            "lists pages" => self.on("tools/list", |params| {
                Reply::Result(page(params["cursor"].as_str()))
            }),
            "lists in a circle" => self.on("tools/list", |params| {
                let page = params["cursor"].as_str().unwrap_or("0");
                let next = if page == "1" { "0" } else { "1" };
                Reply::Result(json!({"tools": [tool(&format!("on_{page}"))], "nextCursor": next}))
            }),
            "lists without end" => self.on("tools/list", |params| {
                let page = params["cursor"].as_str().unwrap_or("0");
                let next = page.parse::<u32>().unwrap() + 1;
                let name = format!("on_{page}");
                Reply::Result(json!({"tools": [tool(&name)], "nextCursor": next.to_string()}))
            }),
            "breaks off its list" => self.answer(|method, params| match method {
                "tools/list" if params["cursor"].is_null() => {
                    Reply::Result(json!({"tools": [tool("work")], "nextCursor": "2"}))
                }
                "tools/list" => Reply::error(-32602, "unknown cursor"),
                _ => Reply::Usual,
            }),
            other => panic!("no server is {other}"),
        }
    }

    /// Serves with a fault in tool calls.
    fn serve_call(&mut self, kind: &str) {
        match kind {
            "dies in a call" => self.on("tools/call", |_| {
                complain("disk full\ngiving up");
                process::exit(3);
            }),
            "deep call" => self.on("tools/call", |_| {
                let deep = (0..100).fold(json!(1), |inner, _| json!({"k": inner}));
                Reply::Result(json!({"content": [], "structuredContent": deep}))
            }),
            // The process hangs in its first call. After a restart it works.
            "hangs in a call" => {
                let mark = std::env::var("MARK").unwrap();
                let newer = std::env::var("ERA").unwrap() == "newer";
                self.answer(|method, _| match method {
                    "server/discover" if newer => Reply::Result(json!({
                        "supportedVersions": ["2026-07-28"],
                        "capabilities": {"tools": {}},
                        "serverInfo": {"name": "bad", "version": "0.1"},
                        "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
                    })),
                    "tools/call" if fs::metadata(&mark).is_err() => {
                        fs::write(&mark, "").unwrap();
                        loop {
                            thread::park();
                        }
                    }
                    _ => Reply::Usual,
                });
            }
            "silent in a call" => self.on("tools/call", |_| Reply::Nothing),
            // The first three calls of `work` get no response. `rest` always gets one.
            "silent in three calls" => {
                self.tools.push("rest");
                let mut left = 3;
                self.answer(|method, params| match method {
                    "tools/call" if params["name"] == "work" && left > 0 => {
                        left -= 1;
                        Reply::Nothing
                    }
                    _ => Reply::Usual,
                });
            }
            "slow in a call" => self.on("tools/call", |params| {
                let late = params["arguments"]["ms"].as_u64().unwrap();
                // sleep: this server is slow, and handles one request at a time.
                thread::sleep(Duration::from_millis(late));
                Reply::Usual
            }),
            "says much in a call" => self.on("tools/call", |params| {
                let bytes = params["arguments"]["bytes"].as_u64().unwrap();
                let text = "x".repeat(usize::try_from(bytes).unwrap());
                Reply::Result(json!({"content": [{"type": "text", "text": text}]}))
            }),
            "writes what a call says" => self.on("tools/call", |params| {
                match params["arguments"]["text"].as_str() {
                    Some(text) => Reply::Text(text.to_owned()),
                    None => Reply::Usual,
                }
            }),
            "floods in a call" => {
                let mut out = io::stdout();
                self.answer(|method, params| {
                    if method == "tools/call" {
                        flood(&mut out, params);
                    }
                    Reply::Usual
                });
            }
            other => panic!("no server is {other}"),
        }
    }

    /// Answers one method with `reply`, and the others as usual.
    fn on(&mut self, special: &str, mut reply: impl FnMut(&Value) -> Reply) {
        self.answer(|method, params| {
            if method == special {
                reply(params)
            } else {
                Reply::Usual
            }
        });
    }

    /// Answers requests until the input ends.
    fn answer(&mut self, mut reply: impl FnMut(&str, &Value) -> Reply) {
        while let Some(Ok(line)) = self.lines.next() {
            let message: Value = serde_json::from_str(&line).unwrap();
            let (Some(id), Some(method)) = (message.get("id"), message["method"].as_str()) else {
                continue;
            };
            let reply = match reply(method, &message["params"]) {
                Reply::Usual => self.usual(method, &message["params"]),
                other => other,
            };
            match reply {
                Reply::Result(result) => self.say(&json!({"id": id, "result": result})),
                Reply::Error(code, message) => {
                    self.say(&json!({"id": id, "error": {"code": code, "message": message}}));
                }
                Reply::Text(text) => {
                    let line = text.replace("$ID", &id.to_string()) + "\n";
                    io::stdout().write_all(line.as_bytes()).unwrap();
                }
                Reply::Nothing | Reply::Usual => {}
            }
        }
    }

    fn usual(&self, method: &str, params: &Value) -> Reply {
        match method {
            "initialize" => Reply::Result(json!({
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "bad", "version": "0.1"},
            })),
            "tools/list" => {
                let tools: Vec<Value> = self.tools.iter().map(|name| tool(name)).collect();
                Reply::Result(json!({"tools": tools}))
            }
            "tools/call" => Reply::Result(json!({
                "content": [{"type": "text", "text": format!("did {}", params["name"])}],
            })),
            _ => Reply::error(-32601, "Method not found"),
        }
    }

    /// Serves with protocol 2026-07-28, and requests an input from the user before each result.
    fn asks_back(&mut self) {
        self.answer(|method, params| match method {
            "server/discover" => Reply::Result(json!({
                "supportedVersions": ["2026-07-28"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "bad", "version": "0.1"},
                "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
            })),
            "tools/call" if params["requestState"] == "s1" => Reply::Result(json!({
                "resultType": "complete",
                "content": [{"type": "text", "text": params["inputResponses"].to_string()}],
            })),
            "tools/call" => Reply::Result(json!({
                "resultType": "input_required",
                "requestState": "s1",
                "inputRequests": {"name": {"method": "elicitation/create", "params": {
                    "mode": "form",
                    "message": "Who are you?",
                    "requestedSchema": {"type": "object", "properties": {}},
                }}},
            })),
            _ => Reply::Usual,
        });
    }

    fn say(&self, message: &Value) {
        let mut message = message.clone();
        message["jsonrpc"] = "2.0".into();
        if self.noise {
            self.noise();
        }
        let mut line = message.to_string();
        line.push('\n');
        io::stdout().write_all(line.as_bytes()).unwrap();
    }

    #[allow(clippy::unused_self, reason = "it is the server that speaks")]
    fn noise(&self) {
        let mut out = io::stdout();
        out.write_all(
            b"Server is listening\n\n{\"half\": \n\xff\xfe\x00\n[1,2]\n{\"log\": true}\n",
        )
        .unwrap();
        out.flush().unwrap();
    }
}
