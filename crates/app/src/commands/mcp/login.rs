//! `servers login` and `servers logout`: OAuth tokens of servers.

use std::fmt::Write as _;

use jiff::Timestamp;
use switchboard_mcp_client::auth::{self, AuthError, LoginInfo};

use crate::{
    run_session::{context::only, servers::Servers},
    terminal::{STRONG, one_line, print_line, without_controls},
};
use crate::{
    run_session::{
        failure::{Code, Failure},
        interrupts::Interrupts,
    },
    terminal::output,
};

/// Logs in to a server and saves its tokens.
pub(crate) async fn login(
    mut servers: Servers,
    name: &str,
    interrupts: &Interrupts,
) -> Result<Code, Failure> {
    only(&mut servers, name)?;
    let server = &servers.configs[0];
    let on_url = |url: &str| {
        print_line(format_args!(
            "Open this address in a browser and agree:\n\n  {STRONG}{}{STRONG:#}\n\nWaiting; \
             Ctrl-C gives up.",
            without_controls(url)
        ));
    };
    let info = tokio::select! {
        info = auth::login(server, &servers.options.auth, on_url) => info.map_err(failure)?,
        () = interrupts.first() => return Ok(Code::Interrupted),
    };
    output::lines(&described(name, &info))?;
    Ok(Code::Success)
}

/// Deletes the tokens of a server.
pub(crate) async fn logout(
    mut servers: Servers,
    name: &str,
    interrupts: &Interrupts,
) -> Result<Code, Failure> {
    only(&mut servers, name)?;
    let server = &servers.configs[0];
    let any = tokio::select! {
        any = auth::logout(server, &servers.options.auth) => any.map_err(failure)?,
        () = interrupts.first() => return Ok(Code::Interrupted),
    };
    let text = if any {
        format!("{name}: logged out")
    } else {
        format!("{name}: not logged in")
    };
    output::lines(&text)?;
    Ok(Code::Success)
}

fn failure(error: AuthError) -> Failure {
    match error {
        AuthError::NotHttp { .. } | AuthError::StaticHeader { .. } => Failure::usage(error),
        error => Failure::run(error),
    }
}

fn described(name: &str, info: &LoginInfo) -> String {
    let mut text = format!(
        "{name}: logged in at {} as {}",
        one_line(&info.issuer, 200),
        one_line(&info.client_id, 200)
    );
    if !info.scopes.is_empty() {
        let _ = write!(text, ", for {}", one_line(&info.scopes.join(" "), 400));
    }
    let end = info.expires_at.and_then(|end| i64::try_from(end).ok());
    let end = end.and_then(|end| Timestamp::from_second(end).ok());
    match (end, info.renewable) {
        (_, true) => text.push_str("; it is renewed automatically"),
        (Some(end), false) => {
            let _ = write!(text, "; it ends at {end}");
        }
        (None, false) => {}
    }
    text
}
