use std::{fs, sync::Arc};

use serde_json::json;
use switchboard_domain::{Role, ToolDefinition, ToolOrigin};
use switchboard_orchestration::{
    recipe::{ApprovalRequirement, ReasoningStyle, RecipeTools},
    strategy::Strategy,
};

use super::*;

/// A working directory and a configuration folder, with recipes in them.
struct Place {
    folder: tempfile::TempDir,
    environment: Environment,
}

impl Place {
    fn with(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut environment = Environment::default();
        environment.working_dir = folder.path().join("project");
        environment.config_dir = Some(folder.path().join("user"));
        for (name, text) in files {
            let file = folder.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        Self {
            folder,
            environment,
        }
    }

    fn find(&self, name: &str) -> FoundRecipe {
        find_recipe(name, &self.environment).unwrap()
    }

    /// The error, without the folder, which differs from run to run.
    fn error(&self, name: &str) -> String {
        let error = find_recipe(name, &self.environment)
            .unwrap_err()
            .to_string();
        error.replace(&self.folder.path().display().to_string(), "")
    }
}

fn tool(server: &str, name: &str) -> Arc<ToolDefinition> {
    let mut tool = ToolDefinition::new(format!("{server}__{name}"), "", json!({}));
    tool.origin = Some(ToolOrigin {
        server: server.into(),
        tool: name.into(),
    });
    Arc::new(tool)
}

#[test]
fn the_shipped_recipes_say_what_they_should() {
    let place = Place::with(&[]);
    for (name, _) in SHIPPED {
        let found = place.find(name);
        assert_eq!(found.source, RecipeSource::Shipped);
        let recipe = found.recipe;
        assert_eq!(recipe.name, name);
        assert!(recipe.title.is_some() && recipe.description.is_some());
        assert_ne!(recipe.reasoning.style, ReasoningStyle::None);
        assert!(recipe.policy.max_tools_per_response.is_some());
        let prompt = recipe.system_prompt().unwrap();
        // Short enough to be paid with every question.
        assert!(prompt.len() < 4_000, "{name}: {}", prompt.len());
        assert!(prompt.contains("# Thinking"), "{prompt}");
    }
}

#[test]
fn customer_service_fits_the_bundled_server() {
    let recipe = Place::with(&[]).find("customer-service").recipe;
    let names = [
        "get_recent_customers",
        "calculate_account_value",
        "create_support_ticket",
    ];
    let mut tools: Vec<_> = names.map(|name| tool("customer-service", name)).into();
    let selected = RecipeTools::new(&recipe).select_tools(&tools);
    assert_eq!(selected.tools.len(), 3);
    assert_eq!(selected.problems, [""; 0]);
    assert!(
        selected
            .tools
            .iter()
            .all(|tool| !tool.description.is_empty())
    );
    tools.push(tool("mail", "send"));
    assert_eq!(
        RecipeTools::new(&recipe).select_tools(&tools).tools.len(),
        3
    );
    let Some(ApprovalRequirement::For(patterns)) = &recipe.policy.requires_approval else {
        panic!("no approval");
    };
    assert_eq!(patterns, &["create_support_ticket"]);
    let examples = recipe.example_messages(&selected.tools);
    assert_eq!(examples.last().unwrap().role, Role::Assistant);
    let calls: Vec<_> = examples
        .iter()
        .flat_map(switchboard_domain::Message::tool_uses)
        .collect();
    assert_eq!(calls.len(), 2);
}

#[test]
fn code_discussion_wants_approval_for_everything_that_changes_something() {
    let recipe = Place::with(&[]).find("code-discussion").recipe;
    let Some(ApprovalRequirement::For(patterns)) = &recipe.policy.requires_approval else {
        panic!("no approval");
    };
    assert_eq!(patterns, &["file_save", "compile", "test_run"]);
    let tools: Vec<_> = recipe
        .tools
        .allow
        .iter()
        .flatten()
        .map(|name| tool("workspace", name))
        .collect();
    assert!(!recipe.example_messages(&tools).is_empty());
}

#[test]
fn the_first_recipe_of_a_name_counts() {
    let place = Place::with(&[
        (
            "project/recipes/orders.yaml",
            "instructions: from the project",
        ),
        (
            "user/recipes/orders.json",
            r#"{"instructions": "from the user"}"#,
        ),
        ("user/recipes/general-chat.toml", "instructions = 'mine'"),
        (
            "user/recipes/file.yaml",
            "name: inside\ninstructions: by its own name",
        ),
        ("user/recipes/notes.txt", "no recipe"),
    ]);
    let orders = place.find("orders");
    assert_eq!(
        orders.recipe.instructions.as_deref(),
        Some("from the project")
    );
    assert_eq!(orders.recipe.name, "orders");
    assert_eq!(
        place.find("general-chat").recipe.instructions.as_deref(),
        Some("mine")
    );
    assert_eq!(
        place.find("inside").recipe.instructions.as_deref(),
        Some("by its own name")
    );
    let entries = list_recipes(&place.environment).unwrap();
    let names: Vec<_> = entries.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "orders",
            "file",
            "general-chat",
            "customer-service",
            "code-discussion"
        ]
    );
}

#[test]
fn a_file_is_read_wherever_it_is_and_nothing_is_filled_in() {
    let place = Place::with(&[(
        "project/elsewhere/mine.yaml",
        "strategy: gather-format\ninstructions: 'Write ${HOME}.'",
    )]);
    for written in ["elsewhere/mine.yaml", "./elsewhere/mine.yaml"] {
        let recipe = place.find(written).recipe;
        assert_eq!(recipe.name, "mine");
        assert!(matches!(recipe.strategy, Some(Strategy::GatherFormat(_))));
        assert_eq!(recipe.instructions.as_deref(), Some("Write ${HOME}."));
    }
    // A name is never a path.
    let by_name = find_recipe_by_name("../elsewhere/mine.yaml", &place.environment);
    assert!(
        by_name
            .unwrap_err()
            .to_string()
            .starts_with("unknown recipe")
    );
    assert!(find_recipe_by_name("../elsewhere/mine", &place.environment).is_err());
}

#[test]
fn errors_name_the_file() {
    let place = Place::with(&[
        ("project/recipes/bad.yaml", "instrucions: x"),
        ("project/recipes/broken.json", "{"),
        ("project/recipes/twice.yaml", "name: twice"),
        ("project/recipes/twice.json", "{}"),
        ("project/recipes/list.yaml", "- a"),
    ]);
    let names = [
        "bad",
        "broken",
        "twice",
        "list",
        "custmer-service",
        "nothing.yaml",
        "a/b.txt",
    ];
    let errors = names.map(|name| place.error(name)).join("\n");
    insta::assert_snapshot!(errors);
    // A broken recipe does not hide the others.
    assert!(find_recipe("code-discussion", &place.environment).is_ok());
    let entries = list_recipes(&place.environment).unwrap();
    assert_eq!(
        entries.iter().filter(|entry| entry.recipe.is_err()).count(),
        3
    );
}

/// What a wire that holds answers to a schema cannot say of the form would have to be repaired.
#[test]
fn every_wire_can_hold_an_answer_to_the_formatters_form() {
    use switchboard_orchestration::strategy::formatter;
    use switchboard_providers_common::schema::{Dialect, compile};
    let schema = formatter::answer_schema();
    for dialect in [
        Dialect::AnthropicStrict,
        Dialect::OpenAiStrict,
        Dialect::GeminiJsonSchema,
        Dialect::OllamaFormat,
    ] {
        let compiled = compile(&schema, dialect);
        let lost: Vec<_> = compiled.lost().collect();
        assert!(lost.is_empty(), "{}: {lost:?}", dialect.name());
        assert!(
            compiled.is_faithful(),
            "{}: {:?}",
            dialect.name(),
            compiled.changes
        );
    }
}
