//! Executes the slash commands of `chat`.

use std::{collections::BTreeSet, fmt::Write as _, io::Write as _, sync::PoisonError};

use anyhow::{Context as _, anyhow};
use clap::ValueEnum as _;
use futures_util::StreamExt as _;
use switchboard_domain::{SessionStore as _, similar_names::list_available_names};
use switchboard_orchestration::ApprovalPolicy;

use super::{
    Chat, ChatFlow,
    session_usage::describe_usage,
    slash_commands::{SlashCommand, help_text},
    transcript,
};
use crate::{
    run_session::{
        arguments::Approve,
        failure::{Code, Failure},
        servers::status::{format_server_statuses, format_tool_row},
    },
    storage::{private_file, recipes},
    terminal::{output, print_line, print_note, print_warning, table::format_table, to_one_line},
};

impl Chat<'_> {
    /// Executes a slash command. An error is printed and does not end the conversation. Only if
    /// standard output is closed, the error is returned.
    pub(super) async fn execute_command(
        &mut self,
        command: SlashCommand,
        argument: Option<String>,
    ) -> Result<ChatFlow, Failure> {
        self.code = Code::Success;
        let flow = self.dispatch_command(command, argument).await;
        self.print_failure(flow)
    }

    /// Prints the error of a slash command. Returns the error instead if standard output is closed.
    pub(super) fn print_failure(
        &mut self,
        flow: Result<ChatFlow, Failure>,
    ) -> Result<ChatFlow, Failure> {
        match flow {
            Err(failure) if !failure.is_broken_pipe() => Ok(self.report_error(&failure.error)),
            flow => flow,
        }
    }

    async fn dispatch_command(
        &mut self,
        command: SlashCommand,
        argument: Option<String>,
    ) -> Result<ChatFlow, Failure> {
        match command {
            SlashCommand::Model => match argument {
                Some(name) => self.set_model(name).await?,
                None => self.print_command_output(&self.format_models())?,
            },
            SlashCommand::Tools => self.print_tools(argument.as_deref()).await?,
            SlashCommand::Servers => match self.resources.host.server_statuses().as_slice() {
                [] => print_note("no servers are configured"),
                statuses => self.print_command_output(&format_server_statuses(statuses))?,
            },
            SlashCommand::Recipe => match argument {
                Some(name) => self.set_recipe(name).await?,
                None => self.print_recipes()?,
            },
            SlashCommand::Usage => self.print_session_usage().await?,
            SlashCommand::Save => {
                let saved = self.save_session(argument.as_deref()).await;
                print_note(&saved.map_err(Failure::runtime_error)?);
            }
            SlashCommand::Resume => self.resume_session(argument).await?,
            SlashCommand::New => self.start_new_session(),
            SlashCommand::Approve => match argument {
                Some(how) => self.set_approval_policy(&how).await?,
                None => self.print_approval_policy().await?,
            },
            SlashCommand::Continue | SlashCommand::Abandon => {
                return self.continue_or_abandon_run(command).await;
            }
            SlashCommand::Help => self.print_command_output(&help_text())?,
            SlashCommand::Quit => return Ok(ChatFlow::Leave(self.code)),
        }
        Ok(ChatFlow::Continue)
    }

    /// Prints the output of a slash command, such as a list of tools: to standard output if the
    /// line editor is in use, otherwise to standard error.
    fn print_command_output(&self, text: &str) -> Result<(), Failure> {
        if self.has_line_editor() {
            return Ok(output::print_lines(text)?);
        }
        // Standard output may be a pipe or a file that must contain only the answers of the model.
        // The output of the command is therefore printed on standard error.
        print_line(text.trim_end());
        Ok(())
    }

    /// Collects the names that the Tab key completes: models, tools, servers, recipes and sessions.
    pub(super) async fn update_completion_names(&mut self) {
        let recording = &self.context.recording;
        let catalog = recording.list_tools(&self.resources.host).await;
        let providers = &self.context.providers;
        let mut models = Vec::new();
        for provider in providers.iter() {
            if !providers.has_access(provider) {
                continue;
            }
            let names = provider.known_models().into_iter();
            models.extend(names.map(|(name, _)| format!("{}/{name}", provider.name)));
        }
        if let Some(recorded) = self.context.recording.recorded_models() {
            models = recorded.iter().map(|(id, _)| id.to_string()).collect();
        }
        let entries = recipes::list_recipes(&self.context.environment).unwrap_or_default();
        let sessions = self.conversations.list_sessions(100).await;
        let sessions = sessions.unwrap_or_default().into_iter();
        let mut names = self.names.write().unwrap_or_else(PoisonError::into_inner);
        names.models = models;
        names.tools = catalog.tools.iter().map(|it| it.name.clone()).collect();
        names.servers = self.server_names().collect();
        names.recipes = entries.into_iter().map(|it| it.name).collect();
        let sessions = sessions.map(|it| (it.id.0, to_one_line(&it.title, 60)));
        names.sessions = sessions.collect();
        let environment = &self.context.environment;
        names.folder.clone_from(&environment.working_dir);
    }

    fn server_names(&self) -> impl Iterator<Item = String> {
        let statuses = self.resources.host.server_statuses().into_iter();
        statuses.map(|status| status.name)
    }

    /// Prints the state changes of MCP servers since the previous call of this function.
    pub(super) async fn print_server_changes(&mut self) {
        let changes = self
            .servers
            .collect_changes(&self.resources.host.server_statuses());
        if changes.is_empty() {
            return;
        }
        for change in &changes {
            if change.worse {
                print_warning(&change.text);
            } else {
                print_note(&change.text);
            }
        }
        self.update_completion_names().await;
    }

    async fn set_model(&mut self, name: String) -> Result<(), Failure> {
        let mut args = self.args.clone();
        args.model = Some(name);
        self.rebuild_agent(args).await?;
        print_note(&format!("model: {}", self.model));
        Ok(())
    }

    fn format_models(&self) -> String {
        let names = self.names.read().unwrap_or_else(PoisonError::into_inner);
        let current = self.model.to_string();
        let mut text = format!("* {current}\n");
        for name in names.models.iter().filter(|name| **name != current) {
            let _ = writeln!(text, "  {}", to_one_line(name, 100));
        }
        text
    }

    async fn print_tools(&self, server: Option<&str>) -> Result<(), Failure> {
        let recording = &self.context.recording;
        let catalog = recording.list_tools(&self.resources.host).await;
        // `--replay` starts no server. The server names come from the recorded tools.
        let origins = catalog.tools.iter().filter_map(|tool| tool.origin.as_ref());
        let recorded = origins.map(|origin| origin.server.clone());
        let servers: BTreeSet<String> = self.server_names().chain(recorded).collect();
        if let Some(name) = server.filter(|name| !servers.contains(*name)) {
            let known: Vec<&str> = servers.iter().map(String::as_str).collect();
            let hint = list_available_names(name, &known);
            let error = anyhow!("unknown server `{name}`{hint}");
            return Err(Failure::usage_error(error));
        }
        for problem in &catalog.problems {
            print_warning(&format!("{}: {}", problem.server, problem.message));
        }
        let redefined = self.resources.host.redefined_tool_names();
        let mut tools = catalog.tools;
        tools.retain(|tool| {
            let origin = tool.origin.as_ref();
            server.is_none_or(|server| origin.is_some_and(|origin| origin.server == server))
        });
        let rows = tools.iter();
        let rows = rows.map(|tool| format_tool_row(tool, redefined.contains(&tool.name)));
        let rows: Vec<_> = rows.collect();
        if rows.is_empty() {
            print_note("no tools");
        } else {
            self.print_command_output(&format_table(&rows))?;
        }
        Ok(())
    }

    fn print_recipes(&self) -> Result<(), Failure> {
        let entries =
            recipes::list_recipes(&self.context.environment).map_err(Failure::runtime_error)?;
        let current = self.args.recipe_name(&self.context);
        let mut rows = Vec::new();
        for entry in entries {
            let recipe = match entry.recipe {
                Ok(found) => found.recipe,
                Err(error) => {
                    print_warning(&error.to_string());
                    continue;
                }
            };
            let is_current = current == Some(entry.name.as_str());
            let about = recipe.description.or(recipe.title).unwrap_or_default();
            let mark = if is_current { "*" } else { " " };
            rows.push([mark.to_owned(), entry.name, to_one_line(&about, 100)]);
        }
        self.print_command_output(&format_table(&rows))?;
        if let Some(current) = current {
            print_note(&format!(
                "current recipe: {current}; /recipe off disables it"
            ));
        }
        Ok(())
    }

    async fn set_recipe(&mut self, name: String) -> Result<(), Failure> {
        let is_off = matches!(name.as_str(), "off" | "none");
        if is_off && self.context.config.recipe.is_some() {
            return Err(Failure::usage_error(anyhow!(
                "the configuration sets a recipe, so it cannot be disabled here. Choose another \
                 recipe"
            )));
        }
        let mut args = self.args.clone();
        args.recipe = Some(name).filter(|_| !is_off);
        self.rebuild_agent(args).await?;
        print_note(&match &self.args.recipe {
            Some(name) => format!("now using the recipe {name} with {}", self.model),
            None => "no recipe is in use now".to_owned(),
        });
        Ok(())
    }

    async fn print_approval_policy(&self) -> Result<(), Failure> {
        let plan = self.args.plan_agent(&self.context).await?;
        let approval = &plan.options.approval;
        let is_asking_model = plan.chosen.model.capabilities().requires_approval;
        let how = match approval.policy {
            ApprovalPolicy::All if is_asking_model && !approval.approved_in_advance => {
                "ask (offline/planner: except read-only tools; `/approve all` allows every tool)"
            }
            _ if plan.later => "later (store the run when an approval is needed)",
            ApprovalPolicy::All => "all (every tool is allowed)",
            ApprovalPolicy::None => "none (read-only tools only)",
            ApprovalPolicy::Ask => "ask (except read-only tools)",
        };
        print_note(&format!("tool approval: {how}"));
        Ok(())
    }

    async fn set_approval_policy(&mut self, how: &str) -> Result<(), Failure> {
        let approve = Approve::from_str(how, false).map_err(|_| {
            let how = to_one_line(how, 40);
            Failure::usage_error(anyhow!(
                "unknown value `{how}`. /approve accepts ask, all, none or later"
            ))
        })?;
        let mut args = self.args.clone();
        args.approve = Some(approve);
        self.rebuild_agent(args).await?;
        print_note("takes effect with the next question");
        Ok(())
    }

    async fn print_session_usage(&self) -> Result<(), Failure> {
        let Some(session) = &self.session else {
            print_note("this session has no questions yet");
            return Ok(());
        };
        let store = &self.conversations.sessions.store;
        let usage = describe_usage(&**store, &self.conversations.owner, &session.id).await?;
        self.print_command_output(&usage)
    }

    /// Writes the session to a new file: as JSON if the file name ends with `.json`, otherwise as
    /// Markdown. Without `file`, the file name is made from the session id. Returns a message that
    /// names the file. Returns an error if the file exists.
    async fn save_session(&self, file: Option<&str>) -> anyhow::Result<String> {
        let Some(session) = &self.session else {
            return Err(anyhow!("this session has no questions yet"));
        };
        let short: String = session.id.0.chars().take(18).collect();
        let name = file.map_or_else(|| format!("chat-{short}.md"), ToOwned::to_owned);
        let path = self.context.environment.working_dir.join(&name);
        let store = &self.conversations.sessions.store;
        let is_json = path
            .extension()
            .is_some_and(|it| it.eq_ignore_ascii_case("json"));
        let text = if is_json {
            let mut text = String::new();
            let mut pieces = store.export(&self.conversations.owner, Some(&session.id));
            while let Some(piece) = pieces.next().await {
                text.push_str(&piece?);
            }
            text
        } else {
            let messages = store
                .load_messages(&self.conversations.owner, &session.id, 0)
                .await?;
            transcript::format_as_markdown(session, &messages)
        };
        let mut options = private_file::owner_only_open_options();
        let created = options.write(true).create_new(true).open(&path);
        let mut file = created.with_context(|| {
            format!("cannot write {name} (choose another file with /save FILE)")
        })?;
        file.write_all(text.as_bytes())
            .with_context(|| format!("cannot write {name}"))?;
        Ok(format!("written to {name}"))
    }
}
