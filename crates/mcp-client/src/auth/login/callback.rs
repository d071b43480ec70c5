//! The end of a browser's way: a listener on 127.0.0.1 that waits for the authorization server to send
//! it back (RFC 8252, section 7.3).

use std::{collections::HashMap, io, net::Ipv4Addr, time::Duration};

use futures_util::{StreamExt, stream::FuturesUnordered};
use reqwest::Url;
use secrecy::SecretString;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::{sleep, timeout},
};

use crate::auth::error::{AuthError, foreign};

/// What was refused, if a person or the page says no.
pub(in crate::auth) const LOGIN: &str = "login";
const PATH: &str = "/callback";
/// How long a connection may take to say what it wants. Browsers open some that say nothing.
const TO_ASK: Duration = Duration::from_secs(10);
/// The longest request that is read. Codes are long in some systems.
const MAX_REQUEST: usize = 32 * 1024;
/// Connections that are listened to at once; more wait.
const MAX_CONNECTIONS: usize = 32;

/// How long to wait if no connection can be taken, such as for want of files.
const AFTER_FAILURE: Duration = Duration::from_millis(100);

const DONE: &str = "You are logged in as far as this page is concerned. You may close it.";
const FAILED: &str = "The login did not work. You may close this page.";
const STRANGE: &str = "This address belongs to no login that is under way.";

/// Listens on 127.0.0.1.
pub(in crate::auth) struct Callback {
    listener: TcpListener,
    pub(in crate::auth) redirect_uri: String,
}

/// What must come back for a login that is under way.
pub(in crate::auth) struct Expected<'a> {
    pub(in crate::auth) state: &'a str,
    pub(in crate::auth) issuer: &'a str,
    /// The authorization server says that it always names itself.
    pub(in crate::auth) names_itself: bool,
}

impl Callback {
    /// Listens on this port; 0 is any that is free.
    pub(in crate::auth) async fn listen(port: u16) -> Result<Self, AuthError> {
        let failed = |source| AuthError::Listener { port, source };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
            .await
            .map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        Ok(Self {
            listener,
            redirect_uri: format!("http://127.0.0.1:{port}{PATH}"),
        })
    }

    /// Listens where this redirect leads to, if that is free, or else anywhere.
    pub(in crate::auth) async fn listen_again(redirect_uri: &str) -> Result<Self, AuthError> {
        let port = Url::parse(redirect_uri)
            .ok()
            .and_then(|url| url.port())
            .unwrap_or(0);
        match Self::listen(port).await {
            Ok(callback) => Ok(callback),
            Err(_) => Self::listen(0).await,
        }
    }

    /// Waits for the code. What does not belong to this login is answered, and passed over.
    pub(in crate::auth) async fn code(
        self,
        expected: &Expected<'_>,
        limit: Duration,
    ) -> Result<SecretString, AuthError> {
        let wait = async {
            let mut connections = FuturesUnordered::new();
            loop {
                tokio::select! {
                    accepted = self.listener.accept(), if connections.len() < MAX_CONNECTIONS => {
                        match accepted {
                            Ok((connection, _)) => connections.push(answer(connection, expected)),
                            Err(error) => {
                                tracing::debug!(%error, "no connection to the callback");
                                sleep(AFTER_FAILURE).await;
                            }
                        }
                    }
                    Some(said) = connections.next(), if !connections.is_empty() => {
                        if let Some(said) = said {
                            return said;
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

/// Reads one request and answers it; what it says about the login, if anything.
async fn answer(
    mut connection: TcpStream,
    expected: &Expected<'_>,
) -> Option<Result<SecretString, AuthError>> {
    let line = timeout(TO_ASK, request_line(&mut connection)).await;
    let said = match line {
        Ok(Ok(line)) => read(&line, expected),
        Ok(Err(_)) | Err(_) => return None,
    };
    let (status, text) = match &said {
        Some(Ok(_)) => ("200 OK", DONE),
        Some(Err(_)) => ("400 Bad Request", FAILED),
        None => ("404 Not Found", STRANGE),
    };
    let page = page(status, text);
    // Nobody may be there to read it any more.
    let _ = timeout(TO_ASK, async {
        connection.write_all(page.as_bytes()).await?;
        connection.shutdown().await
    })
    .await;
    said
}

/// The first line of a request. The rest of its head is read too: closing a connection with unread
/// input resets it, and the browser may not see the page.
async fn request_line(connection: &mut TcpStream) -> io::Result<String> {
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

fn page(status: &str, text: &str) -> String {
    let body = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Switchboard</title>\
         <p>{text}</p></html>"
    );
    // The address holds the code, so it goes nowhere from here.
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\
         Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\n\
         Content-Security-Policy: default-src 'none'\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

/// What a request says about the login. `None`: it is about something else.
fn read(line: &str, expected: &Expected<'_>) -> Option<Result<SecretString, AuthError>> {
    let target = line.strip_prefix("GET ")?.split(' ').next()?;
    let url = Url::parse("http://127.0.0.1/").ok()?.join(target).ok()?;
    if url.path() != PATH {
        return None;
    }
    let mut parameters = HashMap::new();
    for (name, value) in url.query_pairs() {
        // A parameter must not come twice (RFC 6749, section 3.1).
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
    Some(checked(&mut parameters, expected))
}

/// The issuer is checked before anything else, and an error of another one is not shown (RFC 9207,
/// section 2.4). It is compared as it is written.
fn checked(
    parameters: &mut HashMap<String, String>,
    expected: &Expected<'_>,
) -> Result<SecretString, AuthError> {
    let issuer = parameters.get("iss").map(String::as_str);
    let is_right = match issuer {
        Some(issuer) => issuer == expected.issuer,
        None => !expected.names_itself,
    };
    if !is_right {
        return Err(AuthError::IssuerMismatch {
            what: "redirect",
            expected: foreign(expected.issuer),
            found: foreign(issuer.unwrap_or("(none)")),
        });
    }
    if let Some(error) = parameters.get("error") {
        return Err(AuthError::Refused {
            what: LOGIN,
            error: foreign(error),
            description: parameters
                .get("error_description")
                .map(|text| foreign(text)),
        });
    }
    match parameters.remove("code").filter(|code| !code.is_empty()) {
        Some(code) => Ok(code.into()),
        None => Err(AuthError::Refused {
            what: LOGIN,
            error: "there is no code in the redirect".to_owned(),
            description: None,
        }),
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    const EXPECTED: Expected<'static> = Expected {
        state: "s",
        issuer: "https://as",
        names_itself: false,
    };

    fn said(line: &str, expected: &Expected<'_>) -> Option<Result<String, String>> {
        read(line, expected).map(|said| {
            said.map(|code| code.expose_secret().to_owned())
                .map_err(|error| error.to_string())
        })
    }

    #[test]
    fn only_what_belongs_to_the_login_counts() {
        let code = Some(Ok("c+ d".to_owned()));
        for line in [
            "GET /callback?code=c%2B+d&state=s HTTP/1.1",
            "GET /callback?state=s&code=c%2B%20d&iss=https%3A%2F%2Fas HTTP/1.1",
            "GET http://127.0.0.1:5/callback?state=s&code=c%2B%20d HTTP/1.1",
        ] {
            assert_eq!(said(line, &EXPECTED), code, "{line}");
        }
        for line in [
            "",
            "GET",
            "GET ",
            "POST /callback?code=c&state=s HTTP/1.1",
            "GET /favicon.ico HTTP/1.1",
            "GET /callback HTTP/1.1",
            "GET /callback?code=c HTTP/1.1",
            "GET /callback?code=c&state=other HTTP/1.1",
            "GET /callback?code=c&state=s&state=s HTTP/1.1",
            "GET /callback?error=access_denied HTTP/1.1",
        ] {
            assert_eq!(said(line, &EXPECTED), None, "{line}");
        }
    }

    #[test]
    fn the_issuer_is_compared_as_it_is_written() {
        let always = Expected {
            names_itself: true,
            ..EXPECTED
        };
        let plain = "GET /callback?code=c&state=s";
        let with = |issuer: &str| format!("{plain}&iss={issuer} HTTP/1.1");
        for expected in [&EXPECTED, &always] {
            assert_eq!(said(&with("https://as"), expected), Some(Ok("c".into())));
            for wrong in [
                "https://evil",
                "https://as/",
                "HTTPS://as",
                "https://as:443",
                "",
            ] {
                let error = said(&with(wrong), expected).unwrap().unwrap_err();
                assert!(error.contains("not of `https://as`"), "{error}");
            }
        }
        let missing = said(&format!("{plain} HTTP/1.1"), &always);
        assert!(missing.unwrap().unwrap_err().contains("(none)"));

        // An error is shown only if it is of the right issuer.
        let denied = "GET /callback?state=s&error=access_denied&error_description=no%1b[31m%0ano";
        assert_eq!(
            said(&format!("{denied} HTTP/1.1"), &EXPECTED),
            Some(Err(
                "the login was refused: access_denied (no[31m no)".into()
            ))
        );
        let wrong = said(&format!("{denied}&iss=https://evil HTTP/1.1"), &EXPECTED);
        assert!(!wrong.unwrap().unwrap_err().contains("access_denied"));
    }
}
