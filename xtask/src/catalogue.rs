//! `cargo xtask catalogue`: generates the data file of `providers-common` with the capabilities and
//! prices of models.
//!
//! The source is the price list in a pinned version of the Python package litellm. The file
//! `overlay.json` is written by hand, and its values take precedence over the source. The generated
//! file is committed, so that builds and tests do not need litellm.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail, ensure};
use regex::Regex;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{packages, process};

/// Name of the generated file.
const DATA: &str = "models.tsv";
/// Name of the file with the rules that change values of the source.
const OVERLAY: &str = "overlay.json";
/// Name of the file with the licence of litellm.
const LICENCE: &str = "LICENSE-litellm";

/// Version of litellm. If you change it, change `WHEEL` too, and review the changes of the
/// generated file line by line.
const VERSION: &str = "1.109.1";

/// Requirement in pip's format. pip verifies the download with the hash.
const WHEEL: &str = "litellm==1.109.1 \
                     --hash=sha256:1c8b4dd671fa0cd0850aa751678704ff77e595fb1e6085b2dc3be39ee19bdaaf";

/// Providers whose models are listed. Ollama is missing, because an Ollama server reports the
/// capabilities of its models.
const PROVIDERS: [&str; 7] = [
    "anthropic",
    "deepseek",
    "gemini",
    "groq",
    "mistral",
    "openai",
    "xai",
];

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Write nothing; fail if the data differs from the source and the overlay
    #[arg(long)]
    check: bool,
}

/// The known values of a model by field name, such as `context_window`. A missing value is unknown.
type Entry = Map<String, Value>;

/// The fields of a model, one per line: its name, its kind, and the fields of litellm that contain
/// the value, in order of precedence.
///
/// The kinds `tokens`, `price` and `date` have their own column, in this order. Any other kind is
/// the word for an ability, such as `tools`, which a model has or lacks. All abilities share one
/// column. `modality:image` means that the list `supported_modalities` contains `image`, and
/// `mode:responses` that the field `mode` is `responses`.
const FIELDS: &str = "\
context_window tokens max_input_tokens
max_output_tokens tokens max_output_tokens
input_price price input_cost_per_token
output_price price output_cost_per_token
cache_read_price price cache_read_input_token_cost
cache_write_price price cache_creation_input_token_cost
tools tools supports_function_calling
parallel_tools parallel supports_parallel_function_calling
forced_tool_choice forced supports_forced_tool_use supports_tool_choice
structured_output schema supports_response_schema
sampling sampling supports_sampling_params
reasoning reasoning supports_reasoning
images images supports_vision modality:image
documents documents supports_pdf_input
audio audio supports_audio_input modality:audio
responses_only responses-only mode:responses
deprecated_on date deprecation_date";

struct Field {
    name: &'static str,
    kind: &'static str,
    sources: Vec<&'static str>,
}

fn fields() -> impl Iterator<Item = Field> {
    FIELDS.lines().map(|line| {
        let mut words = line.split(' ');
        Field {
            name: words.next().unwrap_or_default(),
            kind: words.next().unwrap_or_default(),
            sources: words.collect(),
        }
    })
}

/// Content of `overlay.json`: rules that change values of the source.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Overlay {
    #[serde(default, rename = "about")]
    _about: Value,
    /// Recommended models by provider. The first model of each provider is its default model.
    featured: BTreeMap<String, Vec<String>>,
    rules: Vec<Rule>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    why: String,
    /// Patterns of existing models to change. `*` matches any text.
    #[serde(default)]
    models: Vec<String>,
    /// Names of new models.
    #[serde(default)]
    add: Vec<String>,
    /// Values that a model of `models` must have, so that the rule changes it.
    #[serde(default, rename = "where")]
    conditions: Entry,
    set: Entry,
}

/// Writes the generated file, or checks it with `--check`. Downloads litellm at the first call.
pub(crate) fn run(args: &Args) -> Result<()> {
    let folder = folder();
    let overlay = fs::read_to_string(folder.join(OVERLAY))
        .with_context(|| format!("failed to read {OVERLAY}"))?;
    let source = install_source()?;
    let models = source.join("litellm/model_prices_and_context_window_backup.json");
    let models = fs::read(models).context("litellm has no price list")?;
    let data = generate_catalogue(&serde_json::from_slice(&models)?, &overlay)?;
    let licence = source.join(format!("litellm-{VERSION}.dist-info/licenses/LICENSE"));
    let licence = fs::read_to_string(licence).context("litellm has no licence")?;
    for (name, text) in [(DATA, &data), (LICENCE, &licence.replace("\r\n", "\n"))] {
        let path = folder.join(name);
        if !args.check {
            fs::write(path, text).with_context(|| format!("failed to write {name}"))?;
            continue;
        }
        // git may have converted the line breaks of the committed file to `\r\n`.
        let committed = fs::read_to_string(path).unwrap_or_default();
        if committed.replace("\r\n", "\n") != *text {
            bail!(
                "{name} differs from litellm {VERSION} with {OVERLAY}: run `cargo xtask catalogue` \
                 and commit its output"
            );
        }
    }
    let models = data.lines().filter(|line| !line.starts_with('#')).count();
    println!("{DATA}: {models} models, {} bytes", data.len());
    Ok(())
}

fn folder() -> PathBuf {
    process::root().join("crates/providers-common/src/catalog")
}

/// Returns the folder with the files of litellm. The files are only read and not executed, so the
/// package for Linux is installed on every platform.
fn install_source() -> Result<PathBuf> {
    let folder = process::target_dir().join(format!("catalogue/litellm-{VERSION}"));
    let requirements = folder.join("requirements.txt");
    // This file is written last. If it is missing, the installation was interrupted and is
    // repeated.
    let mark = folder.join("installed.txt");
    if !mark.exists() {
        fs::create_dir_all(&folder)?;
        fs::write(&requirements, WHEEL)?;
        let mut install = process::command(packages::system_python("import pip")?);
        install
            .args(["-m", "pip", "install", "--quiet", "--no-deps", "--upgrade"])
            .args(["--disable-pip-version-check", "--require-hashes"])
            .args(["--only-binary", ":all:"])
            .args(["--platform", "manylinux_2_28_x86_64"])
            .args(["--python-version", "3.10"])
            .args(["--implementation", "cp", "--abi", "abi3"])
            .arg("--target")
            .arg(&folder)
            .arg("--requirement")
            .arg(&requirements);
        process::run(&mut install)?;
        fs::write(&mark, WHEEL)?;
    }
    Ok(folder)
}

/// Returns the content of the generated file for the models of litellm and the text of
/// `overlay.json`.
fn generate_catalogue(models: &Value, overlay: &str) -> Result<String> {
    let overlay: Overlay = serde_json::from_str(overlay).context("the overlay is invalid")?;
    let mut entries = read_source(models)?;
    for rule in &overlay.rules {
        apply_rule(rule, &mut entries).with_context(|| format!("overlay rule: {}", rule.why))?;
    }
    // A model with a version suffix is omitted if its values equal those of the model without the
    // suffix. Readers of the file then use the name without the suffix.
    let is_repeated = |(name, entry): &(&String, &Entry)| {
        strip_version_suffix(name).is_some_and(|base| entries.get(base) == Some(entry))
    };
    let distinct = entries.iter().filter(|it| !is_repeated(it));
    let columns = fields().filter(|it| matches!(it.kind, "tokens" | "price" | "date"));
    let mut columns: Vec<&str> = columns.map(|field| field.name).collect();
    columns.insert(columns.len() - 1, "abilities");
    let mut text = format!(
        "# Capabilities and prices of models, generated by `cargo xtask catalogue`. Edit \
         overlay.json.\n\
         # The facts of the source are under its licence, LICENSE-litellm.\n\
         # source: litellm {VERSION}\n\
         # Limits: tokens. Prices: US dollars per million tokens. `!`: no. Missing or `-`: \
         unknown.\n\
         # model | {} | featured\n",
        columns.join(" | ")
    );
    for (name, entry) in distinct {
        let cells = format_cells(entry).with_context(|| format!("model `{name}`"))?;
        let rank = name.split_once('/').and_then(|(provider, name)| {
            let mut featured = overlay.featured.get(provider)?.iter();
            let position = featured.position(|it| it == name)?;
            Some((position + 1).to_string())
        });
        let cells = cells.into_iter().chain([rank]);
        let cells = cells.map(|it| it.unwrap_or_else(|| "-".to_owned()));
        let _ = writeln!(text, "{name}\t{}", cells.collect::<Vec<_>>().join("\t"));
    }
    for (provider, names) in &overlay.featured {
        for name in names {
            let key = format!("{provider}/{name}");
            ensure!(
                entries.contains_key(&key),
                "the featured model `{key}` does not exist"
            );
        }
    }
    Ok(text)
}

/// Returns the models of litellm that generate text, by `PROVIDER/NAME`.
fn read_source(models: &Value) -> Result<BTreeMap<String, Entry>> {
    let models = models.as_object().context("the source is not an object")?;
    let mut entries = BTreeMap::new();
    // litellm may list a model twice: as `NAME` and as `PROVIDER/NAME`. The entry with the prefix
    // is read last and replaces the other one.
    for has_prefix in [false, true] {
        for (key, model) in models {
            let provider = model["litellm_provider"].as_str().unwrap_or_default();
            let own = key.strip_prefix(provider);
            let own = own.and_then(|rest| rest.strip_prefix('/'));
            if !PROVIDERS.contains(&provider) || !writes_text(model) || own.is_some() != has_prefix
            {
                continue;
            }
            let name = own.unwrap_or(key);
            ensure!(
                !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic()),
                "`{key}` cannot be used as a name in the data"
            );
            let fields = fields().filter_map(|field| {
                let value = field.sources.iter().find_map(|it| field.read(model, it))?;
                Some((field.name.to_owned(), value))
            });
            let entry: Entry = fields.collect();
            if !entry.is_empty() {
                entries.insert(format!("{provider}/{name}"), entry);
            }
        }
    }
    Ok(entries)
}

/// Returns whether the model generates text. Embedding and music models do not.
fn writes_text(model: &Value) -> bool {
    let outputs = model["supported_output_modalities"].as_array();
    (model["mode"] == "chat" || model["mode"] == "responses")
        && outputs.is_none_or(|outputs| outputs.contains(&json!("text")))
}

impl Field {
    /// Returns the value of this field for the litellm entry `model`. `source` is the name of the
    /// litellm field. Returns `None` for an unknown value.
    fn read(&self, model: &Value, source: &str) -> Option<Value> {
        match source.split_once(':') {
            Some(("mode", mode)) => return (model["mode"] == mode).then(|| json!(true)),
            Some((_, modality)) => {
                // Without the list, the modalities of the model are unknown.
                let inputs = model["supported_modalities"].as_array()?;
                return Some(json!(inputs.contains(&json!(modality))));
            }
            None => {}
        }
        let value = model.get(source)?.clone();
        match self.kind {
            "tokens" => (value != 0).then_some(value),
            // Converts the price of one token to the price of a million tokens. Rounding removes
            // digits such as those in 0.30000000000000004.
            "price" => Some(match value.as_f64() {
                Some(price) => json!((price * 1e12).round() / 1e6),
                None => value,
            }),
            "date" => Some(value),
            _ => value.is_boolean().then_some(value),
        }
    }
}

/// Applies a rule of `overlay.json`. Returns an error if the rule matches no model, or if it adds a
/// model that the source already contains, because such a rule is obsolete.
fn apply_rule(rule: &Rule, entries: &mut BTreeMap<String, Entry>) -> Result<()> {
    ensure!(!rule.why.is_empty(), "`why` is empty");
    ensure!(!rule.set.is_empty(), "`set` is empty");
    ensure!(
        rule.models.is_empty() != rule.add.is_empty(),
        "exactly one of `models` and `add` must be set"
    );
    ensure!(
        rule.add.is_empty() || rule.conditions.is_empty(),
        "`where` selects existing models: it cannot be combined with `add`"
    );
    for name in rule.set.keys().chain(rule.conditions.keys()) {
        let is_known = fields().any(|field| field.name == name);
        ensure!(is_known, "unknown field `{name}`");
    }
    let change = |entry: &mut Entry| {
        entry.extend(rule.set.clone());
        entry.retain(|_, value| !value.is_null());
    };
    for pattern in &rule.models {
        let regex = regex::escape(pattern).replace(r"\*", ".*");
        let regex = Regex::new(&format!("^{regex}$"))?;
        let meets = |entry: &Entry| {
            let mut conditions = rule.conditions.iter();
            conditions.all(|(field, value)| entry.get(field).unwrap_or(&Value::Null) == value)
        };
        let mut has_match = false;
        for (name, entry) in entries.iter_mut() {
            if regex.is_match(name) && meets(entry) {
                has_match = true;
                change(entry);
            }
        }
        ensure!(has_match, "no model matches `{pattern}`");
    }
    for name in &rule.add {
        let mut entry = Entry::new();
        change(&mut entry);
        let old = entries.insert(name.clone(), entry);
        ensure!(old.is_none(), "the source already contains `{name}`");
    }
    Ok(())
}

/// Returns the cells of a model's line in the generated file. `None` is an unknown value.
fn format_cells(entry: &Entry) -> Result<Vec<Option<String>>> {
    let mut cells = Vec::new();
    let mut words: Vec<String> = Vec::new();
    for field in fields() {
        let cell = entry.get(field.name).map(|value| {
            let text = match (field.kind, value) {
                ("tokens", Value::Number(it)) if it.is_u64() => Some(it.to_string()),
                ("price", value) => {
                    let price = value.as_f64().filter(|it| *it >= 0.0);
                    price.map(|it| format!("{it}"))
                }
                ("date", Value::String(date)) if matches_pattern(date, "20dd-dd-dd") => {
                    Some(date.clone())
                }
                ("tokens" | "date", _) => None,
                (word, Value::Bool(true)) => Some(word.to_owned()),
                (word, Value::Bool(false)) => Some(format!("!{word}")),
                _ => None,
            };
            text.with_context(|| format!("`{}` is {value}", field.name))
        });
        let cell = cell.transpose()?;
        match field.kind {
            "tokens" | "price" => cells.push(cell),
            "date" => cells.extend([(!words.is_empty()).then(|| words.join(",")), cell]),
            _ => words.extend(cell),
        }
    }
    Ok(cells)
}

/// Removes the version suffix of a model name: `-latest`, a date, or a number such as `-001`.
/// Returns `None` if the name has no suffix. `providers-common/src/catalog/model_names.rs` reads
/// names by the same rule, and a test compares the two.
fn strip_version_suffix(name: &str) -> Option<&str> {
    let forms = ["-latest", "-20dd-dd-dd", "-20dddddd", "@20dddddd", "-00d"];
    let mut bases = forms.iter().filter_map(|form| {
        let (base, tail) = name.split_at_checked(name.len().checked_sub(form.len())?)?;
        matches_pattern(tail, form).then_some(base)
    });
    bases.next().filter(|base| !base.is_empty())
}

/// Returns whether a text has the form `form`, in which `d` matches any digit.
fn matches_pattern(text: &str, form: &str) -> bool {
    let mut pairs = text.bytes().zip(form.bytes());
    text.len() == form.len()
        && pairs.all(|(byte, form)| byte == form || (form == b'd' && byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests;
