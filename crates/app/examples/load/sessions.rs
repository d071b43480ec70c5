//! Many streaming sessions at once, beside the same streams without the server.
//!
//! A model server on loopback writes slowly, as models do: each word is the time at which it was written. Clients
//! read it once directly and once through the server, each in a session of its own whose events are stored before
//! anybody sees them. What is measured: how much later a word comes than it would without the server, and what a
//! session costs of the server's memory and CPU time. Times are in microseconds, memory in bytes.

use std::{env, time::Instant};

use futures_util::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};

use super::{
    Outcome,
    model::{WORDS, lateness},
    process::Process,
    quantile,
};

/// Reads a stream of server-sent events and gives the lateness of its words, as `word` finds them in the data.
async fn read(
    response: reqwest::Response,
    word: impl Fn(&Value) -> Option<&str>,
) -> Outcome<Vec<f64>> {
    let mut late = Vec::new();
    let mut text = String::new();
    let mut body = response.error_for_status()?.bytes_stream();
    while let Some(piece) = body.next().await {
        text.push_str(std::str::from_utf8(&piece?)?);
        while let Some((frame, rest)) = text.split_once("\n\n") {
            for data in frame.lines().filter_map(|line| line.strip_prefix("data:")) {
                if let Ok(data) = serde_json::from_str::<Value>(data) {
                    late.extend(
                        word(&data)
                            .iter()
                            .flat_map(|words| words.split_whitespace())
                            .filter_map(lateness),
                    );
                }
            }
            text = rest.to_owned();
        }
    }
    if u64::try_from(late.len())? == WORDS {
        Ok(late)
    } else {
        Err(format!("a stream has {} of {WORDS} words", late.len()).into())
    }
}

async fn directly(client: &reqwest::Client, model: &str) -> Outcome<Vec<f64>> {
    let request =
        json!({"model": "slow", "stream": true, "messages": [{"role": "user", "content": "Go."}]});
    let url = format!("{model}/v1/chat/completions");
    let post = client.post(url).header("content-type", "application/json");
    let response = post.body(request.to_string()).send().await?;
    read(response, |chunk| {
        chunk["choices"][0]["delta"]["content"].as_str()
    })
    .await
}

async fn through(client: &reqwest::Client, address: &str) -> Outcome<Vec<f64>> {
    let request = json!({"message": "Go.", "background": true});
    let response = begin_and_follow(client, address, &request).await?;
    read(response, |event| {
        let is_text = event["type"] == "text_delta";
        is_text.then(|| event["text"].as_str()).flatten()
    })
    .await
}

/// Begins a run, and reads its events from the first.
pub(super) async fn begin_and_follow(
    client: &reqwest::Client,
    address: &str,
    request: &Value,
) -> Outcome<reqwest::Response> {
    let post = client
        .post(format!("{address}/chat"))
        .header("content-type", "application/json");
    let response = post.body(request.to_string()).send().await?;
    let response = response.error_for_status()?;
    let started: Value = serde_json::from_slice(&response.bytes().await?)?;
    let run = started["run_id"].as_str().ok_or("no run_id")?;
    let url = format!("{address}/runs/{run}/events");
    Ok(client.get(url).send().await?)
}

/// What so many clients at once measure.
async fn all<F>(sessions: usize, one: impl Fn() -> F) -> Outcome<Vec<f64>>
where
    F: Future<Output = Outcome<Vec<f64>>>,
{
    let clients = stream::iter((0..sessions).map(|_| one()));
    let late: Vec<Vec<f64>> = clients.buffer_unordered(sessions).try_collect().await?;
    let mut late = late.concat();
    late.sort_by(f64::total_cmp);
    Ok(late)
}

fn say(name: &str, sorted: &[f64]) {
    for percent in [50, 90, 99] {
        println!("{name}-p{percent} {:.0}", quantile(sorted, percent));
    }
}

#[allow(clippy::cast_precision_loss, reason = "some thousand")]
pub(super) async fn measure(program: &str, sessions: usize) -> Outcome<()> {
    let of_model = tempfile::tempdir()?;
    let own = env::current_exe()?;
    let model = Process::example(&own, of_model.path(), &["serve-model"]).await?;
    let client = reqwest::Client::builder().no_proxy().build()?;
    let direct = all(sessions, || directly(&client, &model.address)).await?;
    say("direct", &direct);

    let folder = tempfile::tempdir()?;
    let configuration = json!({
        "model": "slow/slow",
        "providers": {"slow": {"base_url": format!("{}/v1", model.address)}},
        "serve": {"max_runs": sessions + 10, "max_runs_each": sessions + 10, "max_connections": sessions * 2 + 100,
                  "max_requests": sessions * 2 + 100, "max_requests_each": sessions * 2 + 100},
    });
    let server =
        Process::switchboard(program, folder.path(), &configuration, &["--no-tools"]).await?;
    // One before, so that what is made once is there.
    through(&client, &server.address).await?;
    let before = server.used()?;
    let begun = Instant::now();
    let late = all(sessions, || through(&client, &server.address)).await?;
    let passed = begun.elapsed();
    let after = server.used()?;
    say("through", &late);
    println!(
        "added-p50 {:.0}",
        quantile(&late, 50) - quantile(&direct, 50)
    );
    println!(
        "added-p99 {:.0}",
        quantile(&late, 99) - quantile(&direct, 99)
    );
    let all = sessions as f64;
    println!("memory-before {:.0}", before.resident);
    println!("memory-session {:.0}", (after.peak - before.resident) / all);
    println!(
        "cpu-word {:.1}",
        (after.cpu - before.cpu) / (all * WORDS as f64)
    );
    println!("passed {:.0}", passed.as_secs_f64() * 1e6);
    server.end().await
}
