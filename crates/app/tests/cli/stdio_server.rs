//! Hand-written MCP servers over stdio: this test program, started with a variable.

use std::io::{BufRead as _, Write as _};

use serde_json::{Value, json};

/// Returns the configuration entry that starts this program with these variables.
pub(crate) fn entry(variables: &Value) -> Value {
    json!({
        "command": std::env::current_exe().unwrap(),
        "args": ["--exact", "server", "--ignored", "--nocapture"],
        "env": variables,
    })
}

/// Passes the client's messages to `receive` and writes the returned ones, if `variable` is set.
pub(crate) fn serve(variable: &str, mut receive: impl FnMut(Value) -> Vec<Value>) {
    if std::env::var(variable).is_err() {
        return;
    }
    for line in std::io::stdin().lock().lines() {
        for mut message in receive(serde_json::from_str(&line.unwrap()).unwrap()) {
            message["jsonrpc"] = "2.0".into();
            let mut out = std::io::stdout();
            writeln!(out, "{message}").unwrap();
            out.flush().unwrap();
        }
    }
}

/// Returns the response to a request: the result, the one of `initialize`, or an error.
pub(crate) fn respond(request: &Value, capabilities: &Value, result: Option<Value>) -> Vec<Value> {
    let Some(id) = request.get("id") else {
        return Vec::new();
    };
    let initialized = (request["method"] == "initialize").then(|| {
        json!({
            "protocolVersion": request["params"]["protocolVersion"],
            "serverInfo": {"name": "test", "version": "1"},
            "capabilities": capabilities,
        })
    });
    let error = json!({"code": -32601, "message": "Method not found"});
    vec![match result.or(initialized) {
        Some(result) => json!({"id": id, "result": result}),
        None => json!({"id": id, "error": error}),
    }]
}
