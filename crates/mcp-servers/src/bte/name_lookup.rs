//! The tool `lookup_name`, which finds the ids (CURIEs) of a name with a name resolver
//! (<https://github.com/NCATSTranslator/NameResolution>, `GET /lookup`).

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    biolink::{is_curie, normalize_category},
    client::ServiceClient,
    query_output::prepend_notice,
    trapi::parse_response_part,
};
use crate::{
    graph::model::{normalize_name, strip_biolink},
    text::{to_single_line, truncate},
    tool::{BundledTool, ToolError, ToolOutput, ToolResult, default_number},
};

/// Maximum number of alternative names that the output lists for one match.
const MAX_SYNONYMS: usize = 5;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// The name to look up, such as `MPO` or `type 2 diabetes`.
    #[schemars(length(min = 1, max = 200))]
    name: String,
    /// Finds only things of this category, such as `biolink:Gene`.
    category: Option<String>,
    /// Finds only things of this organism, such as `NCBITaxon:9606` for humans, or of no organism.
    taxon: Option<String>,
    /// Maximum number of matches to list.
    #[serde(default = "default_number::<5>")]
    #[schemars(range(min = 1, max = 25))]
    limit: usize,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    /// The matches, the best first.
    matches: Vec<NameMatch>,
    /// States that these are bundled sample data, because the service cannot be reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    notice: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct NameMatch {
    /// The CURIE of the match, for use in queries.
    curie: String,
    /// The display name of the match.
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    /// The most specific category of the match, such as `Gene`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    /// The organisms of the match, such as `NCBITaxon:9606`.
    taxa: Vec<String>,
    /// At most five other names of the match.
    synonyms: Vec<String>,
}

/// A match as the name resolver returns it.
#[derive(Debug, Deserialize)]
pub(super) struct ResolverMatch {
    pub(super) curie: String,
    pub(super) label: Option<String>,
    #[serde(default)]
    pub(super) types: Vec<String>,
    #[serde(default)]
    pub(super) taxa: Vec<String>,
    #[serde(default)]
    pub(super) synonyms: Vec<String>,
}

pub(super) fn lookup_name_tool(client: ServiceClient) -> BundledTool {
    BundledTool::new(
        "lookup_name",
        "Look up a name",
        "Finds the CURIEs of a gene, disease, drug or other thing by its name, such as \
         NCBIGene:4353 for MPO. Use it before a query if the CURIE is not known. An invented \
         CURIE finds nothing, or another thing.",
        client,
        run_tool,
    )
    .map_annotations(|it| it.open_world(true))
}

async fn run_tool(client: ServiceClient, input: Input) -> ToolResult<Output> {
    let limit = input.limit.to_string();
    let mut parameters = vec![
        ("string", input.name.as_str()),
        ("autocomplete", "false"),
        ("limit", &limit),
    ];
    let category = input.category.as_deref().map(|given| {
        normalize_category(given).ok_or_else(|| {
            ToolError::from(format!(
                "category is {:?}; it must have the form biolink:Gene.",
                truncate(given, 60)
            ))
        })
    });
    let category = category.transpose()?;
    if let Some(category) = &category {
        parameters.push(("biolink_type", strip_biolink(category)));
    }
    if let Some(taxon) = &input.taxon {
        if !is_curie(taxon) {
            return Err(format!(
                "taxon is {:?}; it must be a CURIE such as NCBITaxon:9606.",
                truncate(taxon, 60)
            )
            .into());
        }
        parameters.push(("only_taxa", taxon));
    }
    let (found, notice) = match client.get_json::<Vec<Value>>("lookup", &parameters).await {
        Ok(found) => {
            let found = found.into_iter().filter_map(parse_response_part);
            (found.collect::<Vec<ResolverMatch>>(), None)
        }
        Err(failure) => {
            let (sample, notice) = client.sample_for(failure)?;
            let taxon = input.taxon.as_deref();
            let found = sample
                .find_names(&input.name, category.as_deref(), taxon)
                .map_err(|error| prepend_notice(Some(&notice), error.to_string()))?;
            (found, Some(notice))
        }
    };
    let found = found.into_iter().filter(|found| is_curie(&found.curie));
    let matches: Vec<NameMatch> = found.take(input.limit).map(to_name_match).collect();
    let notice_line = notice.as_deref();
    if matches.is_empty() {
        let name = to_single_line(&input.name);
        let text = format!("No match for {name}. Try another name, or omit category and taxon.");
        return Err(prepend_notice(notice_line, text).into());
    }
    let text = prepend_notice(notice_line, describe_matches(&input.name, &matches));
    let data = Output { matches, notice };
    Ok(ToolOutput { text, data })
}

fn to_name_match(found: ResolverMatch) -> NameMatch {
    let label = found.label.as_deref().and_then(normalize_name);
    let others = found.synonyms.iter().filter_map(|it| normalize_name(it));
    let synonyms = others.filter(|it| Some(it) != label.as_ref());
    let kind = found.types.first().map(|it| strip_biolink(it));
    let taxa = found.taxa.into_iter().filter(|it| is_curie(it));
    NameMatch {
        synonyms: synonyms.take(MAX_SYNONYMS).collect(),
        kind: kind.and_then(normalize_name),
        taxa: taxa.take(5).collect(),
        curie: found.curie,
        label,
    }
}

fn describe_matches(name: &str, matches: &[NameMatch]) -> String {
    let mut text = format!("Matches for {}, the best first:", to_single_line(name));
    for it in matches {
        let _ = write!(text, "\n- {}", it.curie);
        if let Some(label) = &it.label {
            let _ = write!(text, ": {label}");
        }
        if let Some(kind) = &it.kind {
            let _ = write!(text, " [{kind}]");
        }
        if !it.taxa.is_empty() {
            let _ = write!(text, " of {}", it.taxa.join(", "));
        }
        if !it.synonyms.is_empty() {
            let _ = write!(text, "; also called {}", it.synonyms.join(", "));
        }
    }
    text
}
