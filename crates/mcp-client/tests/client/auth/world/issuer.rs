//! The authorization servers.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use axum::{
    Json, Router,
    extract::{Path, RawQuery, State},
    http::{HeaderMap, StatusCode, Uri, header},
    response::{IntoResponse, Redirect, Response},
    routing::{any, get, post},
};
use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use reqwest::Url;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{Books, Code, Context, Issued, Renewal, Shared};

pub(super) fn app() -> Router<(Shared, String)> {
    Router::new()
        .route("/authorize", get(page))
        .route("/token", post(token))
        .route("/register", post(register))
        .route("/revoke", post(revoke))
        .route("/away/{*rest}", get(away))
        .fallback(any(metadata))
}

/// Redirects to the URL in the path.
async fn away(Path(rest): Path<String>) -> Redirect {
    Redirect::temporary(&rest)
}

async fn metadata(State((shared, base)): Context, uri: Uri) -> Response {
    let world = shared.world();
    world.write_down("GET", uri.path());
    let manners = world.manners().clone();
    let is_other = base == world.other_issuer;
    let is_here = if is_other {
        uri.path() == "/.well-known/oauth-authorization-server"
    } else {
        manners.metadata_path == Some(uri.path())
    };
    if !is_here {
        return StatusCode::NOT_FOUND.into_response();
    }
    let issuer = if is_other || base == world.mcp {
        base.clone()
    } else {
        world.issuer.clone()
    };
    let mut found = json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{base}/authorize?kept=yes"),
        "token_endpoint": format!("{base}/token"),
        "registration_endpoint": format!("{base}/register"),
        "revocation_endpoint": format!("{base}/revoke"),
        "code_challenge_methods_supported": ["plain", "S256"],
    });
    for (name, value) in manners.metadata.as_object().unwrap() {
        if value.is_null() {
            found.as_object_mut().unwrap().remove(name);
        } else {
            found[name] = value.clone();
        }
    }
    Json(found).into_response()
}

async fn register(State((shared, base)): Context, Json(asked): Json<Value>) -> Response {
    let world = shared.world();
    world.write_down("POST", "/register");
    let mut books = world.books();
    books.registrations.push(asked.clone());
    let id = format!("{}@{base}", books.fresh("client"));
    let method = asked["token_endpoint_auth_method"]
        .as_str()
        .unwrap()
        .to_owned();
    let secret = (method != "none").then(|| books.fresh("client-secret"));
    let redirects = asked["redirect_uris"].as_array().unwrap();
    let redirects = redirects.iter().map(|uri| uri.as_str().unwrap().to_owned());
    let client = (secret.clone(), method.clone(), redirects.collect());
    books.clients.insert(id.clone(), client);
    let answer = json!({
        "client_id": id,
        "client_secret": secret,
        "token_endpoint_auth_method": method,
    });
    (StatusCode::CREATED, Json(answer)).into_response()
}

fn parameters(text: &str) -> HashMap<String, String> {
    let url = Url::parse(&format!("http://h/?{text}")).unwrap();
    let mut found = HashMap::new();
    for (name, value) in url.query_pairs() {
        let twice = found.insert(name.to_string(), value.to_string());
        assert_eq!(twice, None, "{name} came twice");
    }
    found
}

async fn page(State((shared, _)): Context, RawQuery(query): RawQuery) -> Response {
    let world = shared.world();
    world.write_down("GET", "/authorize");
    let asked = parameters(&query.unwrap());
    let manners = world.manners().clone();
    let mut books = world.books();
    books.pages.push(asked.clone());
    let refuse = |why: &str| (StatusCode::BAD_REQUEST, why.to_owned()).into_response();
    let id = asked["client_id"].clone();
    let redirect_uri = asked["redirect_uri"].clone();
    let is_document = id.starts_with("https://");
    match books.clients.get(&id) {
        Some((.., redirects)) if redirects.is_empty() || redirects.contains(&redirect_uri) => {}
        None if is_document => {}
        _ => return refuse("unknown client or redirect"),
    }
    if asked["response_type"] != "code" || asked["code_challenge_method"] != "S256" {
        return refuse("no code, or no PKCE");
    }
    let code = books.fresh("code");
    let issued = Code {
        client: id,
        redirect_uri: redirect_uri.clone(),
        challenge: asked["code_challenge"].clone(),
        resource: asked["resource"].clone(),
        scopes: asked.get("scope").cloned().unwrap_or_default(),
    };
    books.codes.insert(code.clone(), issued);
    let mut back = Url::parse(&redirect_uri).unwrap();
    back.query_pairs_mut().append_pair("state", &asked["state"]);
    match manners.denies {
        Some(error) => back.query_pairs_mut().append_pair("error", error),
        None => back.query_pairs_mut().append_pair("code", &code),
    };
    if let Some(iss) = manners.iss {
        back.query_pairs_mut().append_pair("iss", &iss);
    }
    Redirect::to(back.as_str()).into_response()
}

/// Returns the client of a token request if its authentication is valid.
fn proven(books: &Books, headers: &HeaderMap, form: &HashMap<String, String>) -> Option<String> {
    let basic = headers
        .get(header::AUTHORIZATION)
        .map(|value| value.to_str().unwrap().strip_prefix("Basic ").unwrap())
        .map(|encoded| String::from_utf8(STANDARD.decode(encoded).unwrap()).unwrap());
    let (id, secret, method) = if let Some(pair) = &basic {
        let (id, secret) = pair.split_once(':').unwrap();
        let decoded = |text: &str| parameters(&format!("x={text}")).remove("x").unwrap();
        assert!(!form.contains_key("client_secret"));
        (decoded(id), Some(decoded(secret)), "client_secret_basic")
    } else {
        let secret = form.get("client_secret").cloned();
        let method = match (&secret, form.get("client_assertion")) {
            (Some(_), _) => "client_secret_post",
            (None, Some(_)) => "private_key_jwt",
            (None, None) => "none",
        };
        (form["client_id"].clone(), secret, method)
    };
    match books.clients.get(&id) {
        Some((known, how, _))
            if how == method && (method == "private_key_jwt" || *known == secret) =>
        {
            Some(id)
        }
        None if id.starts_with("https://") && method == "none" => Some(id),
        _ => None,
    }
}

async fn token(State((shared, base)): Context, headers: HeaderMap, body: String) -> Response {
    let world = shared.world();
    world.write_down("POST", "/token");
    let manners = world.manners().clone();
    let form = parameters(&body);
    world.books().forms.push(form.clone());
    if let ("refresh_token", Some(slow)) = (form["grant_type"].as_str(), &manners.slow_renewal) {
        let [begun, go_on] = slow;
        begun.notify_one();
        go_on.notified().await;
    }
    if manners.is_down {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let mut books = world.books();
    let refuse = |error: &str| {
        let error = json!({"error": error, "error_description": "because\u{1b}[31m"});
        (StatusCode::BAD_REQUEST, Json(error)).into_response()
    };
    let Some(client) = proven(&books, &headers, &form) else {
        return refuse("invalid_client");
    };
    let (scopes, resource) = match form["grant_type"].as_str() {
        "authorization_code" => {
            // An authorization code is valid once.
            let Some(code) = books.codes.remove(&form["code"]) else {
                return refuse("invalid_grant");
            };
            let proof = URL_SAFE_NO_PAD.encode(Sha256::digest(&form["code_verifier"]));
            let is_right = code.client == client
                && code.redirect_uri == form["redirect_uri"]
                && code.challenge == proof
                && code.resource == form["resource"];
            if !is_right {
                return refuse("invalid_grant");
            }
            (code.scopes, code.resource)
        }
        "refresh_token" => {
            let Some(renewal) = books.renewals.remove(&form["refresh_token"]) else {
                // A refresh token that is used twice may have been stolen. All tokens become
                // invalid.
                books.renewals.clear();
                books.tokens.clear();
                return refuse("invalid_grant");
            };
            if renewal.client != client || renewal.resource != form["resource"] {
                return refuse("invalid_grant");
            }
            (renewal.scopes, renewal.resource)
        }
        "client_credentials" => {
            let scopes = form.get("scope").cloned().unwrap_or_default();
            (scopes, form["resource"].clone())
        }
        _ => return refuse("unsupported_grant_type"),
    };
    let lasts = manners.lifetimes[books.issued.min(manners.lifetimes.len() - 1)];
    books.issued += 1;
    let access = books.fresh("access");
    let token = Issued {
        scopes: scopes.split_whitespace().map(str::to_owned).collect(),
        until: Instant::now() + Duration::from_secs(lasts),
        resource: resource.clone(),
        issuer: base,
    };
    books.tokens.insert(access.clone(), token);
    let mut answer = json!({"access_token": access, "token_type": "Bearer", "expires_in": lasts});
    if manners.gives_refresh_tokens && form["grant_type"] != "client_credentials" {
        let refresh = books.fresh("refresh");
        let renewal = Renewal {
            client,
            resource,
            scopes,
        };
        books.renewals.insert(refresh.clone(), renewal);
        answer["refresh_token"] = refresh.into();
    }
    Json(answer).into_response()
}

async fn revoke(State((shared, _)): Context, headers: HeaderMap, body: String) -> StatusCode {
    let world = shared.world();
    world.write_down("POST", "/revoke");
    let form = parameters(&body);
    let mut books = world.books();
    if proven(&books, &headers, &form).is_none() {
        return StatusCode::UNAUTHORIZED;
    }
    books.renewals.remove(&form["token"]);
    books.tokens.remove(&form["token"]);
    StatusCode::OK
}
