//! The MCP server.

use std::time::Instant;

use axum::{
    Json, Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode, Uri, header},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde_json::{Value, json};

use super::{Context, MORE, Manners, Shared, World, issuer};

pub(super) fn app() -> Router<(Shared, String)> {
    Router::new()
        .route("/mcp", post(mcp))
        .route("/.well-known/oauth-protected-resource", get(resource))
        .route("/.well-known/oauth-protected-resource/mcp", get(resource))
        // With protocol 2025-03-26, the MCP server is its own authorization server.
        .merge(issuer::app())
}

async fn resource(State((shared, _)): Context, uri: Uri) -> Response {
    let world = shared.world();
    world.write_down("GET", uri.path());
    let at_endpoint = uri.path().ends_with("/mcp");
    let found = world.manners().resource.clone();
    match found {
        // Metadata of the whole server are only at the root path, and metadata of the endpoint only
        // at the path of the endpoint.
        Some(found) if at_endpoint != (found["resource"] == world.mcp) => {
            Json(found).into_response()
        }
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

/// Returns the issuer whose tokens the MCP server accepts: the first one in its metadata.
fn trusted(world: &World, manners: &Manners) -> String {
    let named = manners.resource.as_ref().and_then(|found| {
        let servers = found["authorization_servers"].as_array()?;
        Some(servers.first()?.as_str()?.to_owned())
    });
    named.unwrap_or_else(|| world.mcp.clone())
}

async fn mcp(State((shared, _)): Context, headers: HeaderMap, body: Bytes) -> Response {
    let world = shared.world();
    let manners = world.manners().clone();
    let message: Value = serde_json::from_slice(&body).unwrap();
    let method = message["method"].as_str().unwrap_or_default();
    let tool = message["params"]["name"].as_str().unwrap_or_default();
    let bearer = headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().unwrap().strip_prefix("Bearer "));
    let metadata = if manners.names_metadata {
        let at = "/.well-known/oauth-protected-resource/mcp";
        format!("resource_metadata=\"{}{at}\"", world.mcp)
    } else {
        "realm=\"mcp\"".to_owned()
    };
    let challenge = |status, rest: &str| {
        let challenge = format!("Bearer {metadata}{rest}");
        (status, [(header::WWW_AUTHENTICATE, challenge)]).into_response()
    };
    let mut books = world.books();
    books.bearers.push(bearer.map(str::to_owned));
    let issuer = trusted(&world, &manners);
    let known = bearer
        .and_then(|token| books.tokens.get(token))
        .filter(|token| {
            let resource = manners
                .resource
                .as_ref()
                .map(|found| found["resource"].clone());
            let resource = resource.unwrap_or_else(|| world.url().into());
            !manners.takes_nothing
                && token.until > Instant::now()
                && resource == token.resource
                && issuer.starts_with(&token.issuer)
        });
    if manners.is_open {
        return answer(&message, method, tool);
    }
    let Some(token) = known else {
        return challenge(StatusCode::UNAUTHORIZED, &manners.challenge);
    };
    let lacks = tool == "more" && !token.scopes.contains(MORE);
    if lacks || (manners.never_enough && method == "tools/call") {
        let rest = format!(", error=\"insufficient_scope\", scope=\"{MORE}\"");
        return challenge(StatusCode::FORBIDDEN, &rest);
    }
    drop(books);
    answer(&message, method, tool)
}

fn answer(message: &Value, method: &str, tool: &str) -> Response {
    let id = &message["id"];
    let result =
        |result: Value| Json(json!({"jsonrpc": "2.0", "id": id, "result": result})).into_response();
    match method {
        "initialize" => result(json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "guarded", "version": "0"},
        })),
        "tools/list" => {
            let tool = |name| json!({"name": name, "inputSchema": {"type": "object"}});
            result(json!({"tools": [tool("some"), tool("more")]}))
        }
        "tools/call" => result(json!({"content": [{"type": "text", "text": tool}]})),
        _ if id.is_null() => StatusCode::ACCEPTED.into_response(),
        _ => {
            let error = json!({"code": -32601, "message": "no such method"});
            Json(json!({"jsonrpc": "2.0", "id": id, "error": error})).into_response()
        }
    }
}
