//! Listener on 127.0.0.1 for the redirect at the end of an OAuth login (RFC 8252, section 7.3).

use std::{collections::HashMap, io, net::Ipv4Addr, time::Duration};

use futures_util::{StreamExt, stream::FuturesUnordered};
use reqwest::Url;
use secrecy::SecretString;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::{sleep, timeout},
};

use crate::{auth::error::AuthError, primitives::error::shorten};

/// Value of the field `what` in [`AuthError::Refused`] if a browser login was rejected or declined.
pub(in crate::auth) const LOGIN: &str = "login";
const PATH: &str = "/callback";
/// Time limit to receive an HTTP request on a connection. Browsers also open connections on which
/// they send no request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size in bytes of an HTTP request. Some servers send long authorization codes.
const MAX_REQUEST: usize = 32 * 1024;
/// Maximum number of concurrent connections to the redirect listener. Further connections wait.
const MAX_CONNECTIONS: usize = 32;

/// Pause after a failed `accept`, for example while the process has no free file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

const DONE: &str = "You are logged in. You can close this page.";
const FAILED: &str = "Login failed. You can close this page.";
const UNKNOWN: &str = "This login link is invalid or has expired.";

/// Listener on 127.0.0.1 that receives the authorization code from the browser.
pub(in crate::auth) struct RedirectListener {
    listener: TcpListener,
    pub(in crate::auth) redirect_uri: String,
}

/// Values that the redirect of one login must contain. A request with another `state` gets status
/// 404, and a redirect from another issuer fails the login.
pub(in crate::auth) struct ExpectedRedirect<'a> {
    pub(in crate::auth) state: &'a str,
    pub(in crate::auth) issuer: &'a str,
    /// Whether the authorization server adds `iss` to every redirect (RFC 9207).
    pub(in crate::auth) sends_issuer: bool,
}

impl RedirectListener {
    /// Starts the listener on a port. Port 0 selects any free port.
    pub(in crate::auth) async fn listen_on_port(port: u16) -> Result<Self, AuthError> {
        let failed = |error: io::Error| {
            AuthError::Failed(format!("cannot listen on 127.0.0.1:{port}: {error}"))
        };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
            .await
            .map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        Ok(Self {
            listener,
            redirect_uri: format!("http://127.0.0.1:{port}{PATH}"),
        })
    }

    /// Starts the listener on the port of an earlier redirect URI, so that its client registration
    /// can be reused. Uses any free port if that port is in use.
    pub(in crate::auth) async fn reuse_port(redirect_uri: &str) -> Result<Self, AuthError> {
        let port = Url::parse(redirect_uri).ok().and_then(|url| url.port());
        match Self::listen_on_port(port.unwrap_or(0)).await {
            Ok(callback) => Ok(callback),
            Err(_) => Self::listen_on_port(0).await,
        }
    }

    /// Waits for the redirect and returns its authorization code. Answers other requests with
    /// status 404. Returns an error if the redirect reports an error, or if no redirect arrives
    /// within `limit`.
    pub(in crate::auth) async fn receive_authorization_code(
        self,
        expected: &ExpectedRedirect<'_>,
        limit: Duration,
    ) -> Result<SecretString, AuthError> {
        let wait = async {
            let mut connections = FuturesUnordered::new();
            loop {
                tokio::select! {
                    accepted = self.listener.accept(), if connections.len() < MAX_CONNECTIONS => {
                        match accepted {
                            Ok((it, _)) => connections.push(handle_request(it, expected)),
                            Err(error) => {
                                tracing::debug!(%error, "failed to accept a connection");
                                sleep(ACCEPT_PAUSE).await;
                            }
                        }
                    }
                    Some(result) = connections.next(), if !connections.is_empty() => {
                        if let Some(result) = result {
                            return result;
                        }
                    }
                }
            }
        };
        timeout(limit, wait)
            .await
            .unwrap_or(Err(AuthError::TimedOut { after: limit }))
    }
}

/// Answers one HTTP request. Returns the result of the login if the request is the redirect.
async fn handle_request(
    mut connection: TcpStream,
    expected: &ExpectedRedirect<'_>,
) -> Option<Result<SecretString, AuthError>> {
    let line = timeout(REQUEST_TIMEOUT, read_request_line(&mut connection)).await;
    let result = match line {
        Ok(Ok(line)) => parse_redirect(&line, expected),
        Ok(Err(_)) | Err(_) => return None,
    };
    let (status, text) = match &result {
        Some(Ok(_)) => ("200 OK", DONE),
        Some(Err(_)) => ("400 Bad Request", FAILED),
        None => ("404 Not Found", UNKNOWN),
    };
    let page = build_html_response(status, text);
    // The browser may have closed the connection, so a failure to send the page is ignored.
    let _ = timeout(REQUEST_TIMEOUT, async {
        connection.write_all(page.as_bytes()).await?;
        connection.shutdown().await
    })
    .await;
    result
}

/// Reads the whole head of an HTTP request and returns its first line. Unread input would reset the
/// connection on close, and the browser might not show the response.
async fn read_request_line(connection: &mut TcpStream) -> io::Result<String> {
    let mut head = Vec::new();
    let mut buffer = [0; 4096];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let read = connection.read(&mut buffer).await?;
        if read == 0 || head.len() + read > MAX_REQUEST {
            return Err(io::ErrorKind::InvalidData.into());
        }
        head.extend_from_slice(&buffer[..read]);
    }
    let head = String::from_utf8_lossy(&head);
    Ok(head.lines().next().unwrap_or_default().to_owned())
}

fn build_html_response(status: &str, text: &str) -> String {
    let body = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Switchboard</title>\
         <p>{text}</p></html>"
    );
    // The page sends no referrer, because its URL contains the authorization code.
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\
         Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\n\
         Content-Security-Policy: default-src 'none'\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

/// Parses the first line of an HTTP request. Returns `None` unless the request is the redirect of
/// this login, which is recognized by its `state`.
fn parse_redirect(
    line: &str,
    expected: &ExpectedRedirect<'_>,
) -> Option<Result<SecretString, AuthError>> {
    let target = line.strip_prefix("GET ")?.split(' ').next()?;
    let url = Url::parse("http://127.0.0.1/").ok()?.join(target).ok()?;
    if url.path() != PATH {
        return None;
    }
    let mut parameters = HashMap::new();
    for (name, value) in url.query_pairs() {
        // OAuth forbids duplicate parameters (RFC 6749, section 3.1), so such a request is ignored.
        if parameters
            .insert(name.into_owned(), value.into_owned())
            .is_some()
        {
            return None;
        }
    }
    if parameters.get("state").map(String::as_str) != Some(expected.state) {
        return None;
    }
    Some(extract_authorization_code(&mut parameters, expected))
}

/// Returns the authorization code or the error in the redirect. Checks the issuer first, so that
/// error text from another issuer is not shown (RFC 9207, section 2.4).
fn extract_authorization_code(
    parameters: &mut HashMap<String, String>,
    expected: &ExpectedRedirect<'_>,
) -> Result<SecretString, AuthError> {
    let issuer = parameters.get("iss").map(String::as_str);
    let is_right = match issuer {
        Some(issuer) => issuer == expected.issuer,
        None => !expected.sends_issuer,
    };
    if !is_right {
        return Err(AuthError::IssuerMismatch {
            what: "redirect",
            expected: shorten(expected.issuer),
            found: shorten(issuer.unwrap_or("(none)")),
        });
    }
    if let Some(error) = parameters.get("error") {
        return Err(AuthError::Refused {
            what: LOGIN,
            error: shorten(error),
            description: parameters
                .get("error_description")
                .map(|text| shorten(text)),
        });
    }
    let code = parameters.remove("code").filter(|code| !code.is_empty());
    code.map(Into::into).ok_or_else(|| AuthError::Refused {
        what: LOGIN,
        error: "the redirect contains no authorization code".to_owned(),
        description: None,
    })
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    const EXPECTED: ExpectedRedirect<'static> = ExpectedRedirect {
        state: "s",
        issuer: "https://as",
        sends_issuer: false,
    };

    fn result(line: &str, expected: &ExpectedRedirect<'_>) -> Option<Result<String, String>> {
        parse_redirect(line, expected).map(|result| {
            result
                .map(|code| code.expose_secret().to_owned())
                .map_err(|error| error.to_string())
        })
    }

    #[test]
    fn the_issuer_is_compared_without_normalization() {
        let always = ExpectedRedirect {
            sends_issuer: true,
            ..EXPECTED
        };
        let plain = "GET /callback?code=c&state=s";
        let with = |issuer: &str| format!("{plain}&iss={issuer} HTTP/1.1");
        for expected in [&EXPECTED, &always] {
            assert_eq!(result(&with("https://as"), expected), Some(Ok("c".into())));
            for wrong in [
                "https://evil",
                "https://as/",
                "HTTPS://as",
                "https://as:443",
                "",
            ] {
                let error = result(&with(wrong), expected).unwrap().unwrap_err();
                assert!(error.contains("expected `https://as`"), "{error}");
            }
        }
        let missing = result(&format!("{plain} HTTP/1.1"), &always);
        assert!(missing.unwrap().unwrap_err().contains("(none)"));

        // An error of another issuer is not shown.
        let denied = "GET /callback?state=s&error=access_denied&error_description=no%1b[31m%0ano";
        assert_eq!(
            result(&format!("{denied} HTTP/1.1"), &EXPECTED),
            Some(Err(
                "the login request was refused: access_denied (no[31m no)".into()
            ))
        );
        let wrong = result(&format!("{denied}&iss=https://evil HTTP/1.1"), &EXPECTED);
        assert!(!wrong.unwrap().unwrap_err().contains("access_denied"));
    }
}
