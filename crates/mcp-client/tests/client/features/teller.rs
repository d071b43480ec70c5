//! A hand-written server with protocol 2026-07-28 that sends task notifications. Clients should not
//! poll its tasks.

use std::io::{BufRead, Write};

use serde_json::{Value, json};

const ID: &str = "io.modelcontextprotocol/subscriptionId";

pub(crate) fn serve() {
    let mut teller = Teller::default();
    for line in std::io::stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line.unwrap()).unwrap();
        teller.hear(&message);
    }
}

#[derive(Default)]
struct Teller {
    /// The id of the pending subscription request.
    listening: Option<Value>,
    /// The call that waits for the end of the subscription.
    waiting: Option<Value>,
    over: bool,
}

impl Teller {
    fn hear(&mut self, message: &Value) {
        let params = &message["params"];
        match message["method"].as_str().unwrap() {
            "server/discover" => answer(
                message,
                json!({
                    "supportedVersions": ["2026-07-28"],
                    "capabilities": {"tools": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}},
                    "serverInfo": {"name": "teller", "version": "1"},
                    "ttlMs": 0, "cacheScope": "private",
                }),
            ),
            "tools/list" => {
                let tool = |name| json!({"name": name, "inputSchema": {"type": "object"}});
                answer(message, json!({"tools": [tool("work"), tool("over")]}));
            }
            "tools/call" if params["name"] == "work" => answer(message, task("working", "begun")),
            "tools/call" => {
                self.waiting = Some(message.clone());
                self.say_when_over();
            }
            "subscriptions/listen" => {
                let wanted = params["notifications"].clone();
                assert_eq!(wanted, json!({"taskIds": ["t-1"]}));
                let id = &message["id"];
                self.listening = Some(id.clone());
                let accepted = json!({"notifications": wanted});
                tell(id, "notifications/subscriptions/acknowledged", accepted);
                tell(id, "notifications/tasks", task("working", "halfway"));
                // A notification about a task of another client.
                let mut others = task("completed", "done");
                others["taskId"] = "t-2".into();
                others["result"] = json!({"content": [{"type": "text", "text": "another's"}]});
                tell(id, "notifications/tasks", others);
                let mut done = task("completed", "done");
                done["result"] = json!({"content": [{"type": "text", "text": "worked"}]});
                tell(id, "notifications/tasks", done);
            }
            "notifications/cancelled" if Some(&params["requestId"]) == self.listening.as_ref() => {
                self.over = true;
                self.say_when_over();
            }
            // A client polls after 20 seconds. By then the test has failed.
            "tasks/get" => answer(message, task("working", "asked after")),
            _ => {}
        }
    }

    fn say_when_over(&mut self) {
        if let Some(call) = self.waiting.take_if(|_| self.over) {
            let text = json!({"content": [{"type": "text", "text": "nobody listens"}]});
            answer(&call, text);
        }
    }
}

fn task(status: &str, said: &str) -> Value {
    json!({
        "resultType": "task", "taskId": "t-1", "status": status, "statusMessage": said,
        "createdAt": "2026-07-28T00:00:00Z", "lastUpdatedAt": "2026-07-28T00:00:00Z",
        "ttlMs": null, "pollIntervalMs": 20_000,
    })
}

fn answer(request: &Value, mut result: Value) {
    if result.get("resultType").is_none() {
        result["resultType"] = "complete".into();
    }
    say(&json!({"jsonrpc": "2.0", "id": request["id"], "result": result}));
}

fn tell(subscription: &Value, method: &str, mut params: Value) {
    if let Some(params) = params.as_object_mut() {
        params.remove("resultType");
    }
    params["_meta"] = json!({ID: subscription});
    say(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
}

fn say(message: &Value) {
    let mut out = std::io::stdout();
    writeln!(out, "{message}").unwrap();
    out.flush().unwrap();
}
