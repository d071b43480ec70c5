//! What the commands do.

use std::{fmt::Write as _, fs::OpenOptions, io::Write as _, sync::PoisonError};

use anyhow::{Context as _, anyhow};
use futures_util::StreamExt as _;
use switchboard_domain::{
    SessionStore as _,
    nearest::{did_you_mean, nearest},
};

use super::{
    Chat, Flow,
    commands::{Command, help},
    transcript,
    usage::Spent,
};
use switchboard_orchestration::ApprovalPolicy;

use crate::{
    cli::{
        Approve, Code, Failure, agent::ApproveArgs, output, servers::describe, table::table,
        tools::parameters,
    },
    model::Readiness,
    recipes,
    terminal::{one_line, say, say_note, say_warning},
};

impl Chat<'_> {
    pub(super) async fn carry_out(&mut self, command: Command) -> Result<Flow, Failure> {
        self.code = Code::Success;
        match command {
            Command::Model(Some(name)) => self.set_model(name).await,
            Command::Model(None) => {
                self.write(&self.models())?;
                Ok(Flow::On)
            }
            Command::Tools(server) => self.tools(server.as_deref()).await,
            Command::Servers => {
                let statuses = self.host.servers();
                if statuses.is_empty() {
                    say_note("no servers are configured");
                } else {
                    self.write(&describe(&statuses))?;
                }
                Ok(Flow::On)
            }
            Command::Recipe(Some(name)) => self.set_recipe(name).await,
            Command::Recipe(None) => self.recipes(),
            Command::Usage => self.usage().await,
            Command::Save(file) => match self.save(file.as_deref()).await {
                Ok(said) => {
                    say_note(&said);
                    Ok(Flow::On)
                }
                Err(error) => Ok(self.failed(&error)),
            },
            Command::Resume(named) => self.resume(named).await,
            Command::New => Ok(self.leave_session()),
            Command::Approve(how) => self.approve(how.as_deref()).await,
            Command::Continue | Command::Abandon => self.open_run_command(&command).await,
            Command::Help => {
                self.write(&help())?;
                Ok(Flow::On)
            }
            Command::Quit => Ok(Flow::Leave(self.code)),
        }
    }

    /// Where a list goes: with the answers, if somebody looks at them.
    fn write(&self, text: &str) -> Result<(), Failure> {
        if self.has_editor() {
            return output::lines(text).map_err(Failure::run);
        }
        // Standard output has answers alone.
        say(text.trim_end());
        Ok(())
    }

    /// Learns what can be completed.
    pub(super) async fn learn(&mut self) {
        let catalog = self.catalog().await;
        let providers = &self.context.providers;
        let mut models = Vec::new();
        for provider in providers.iter() {
            if matches!(providers.readiness(provider), Readiness::KeyMissing(_)) {
                continue;
            }
            let known = providers.known_models(provider).into_iter();
            models.extend(known.map(|(name, _)| format!("{}/{name}", provider.name)));
        }
        if let Some(recorded) = self.context.tape.models() {
            models = recorded.iter().map(|(id, _)| id.to_string()).collect();
        }
        let entries = recipes::list(&self.context.environment).unwrap_or_default();
        let sessions = self.talks.list(100).await.unwrap_or_default();
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.models = models;
        known.tools = catalog.tools.iter().map(|it| it.name.clone()).collect();
        known.servers = self.host.servers().into_iter().map(|it| it.name).collect();
        known.recipes = entries.into_iter().map(|it| it.name).collect();
        known.sessions = sessions
            .into_iter()
            .map(|it| (it.id.0, one_line(&it.title, 60)))
            .collect();
        known
            .folder
            .clone_from(&self.context.environment.working_dir);
    }

    /// Says what became of the servers since the last time.
    pub(super) async fn tell_server_changes(&mut self) {
        let changes = self.servers.changes(&self.host.servers());
        if changes.is_empty() {
            return;
        }
        for change in &changes {
            if change.worse {
                say_warning(&change.text);
            } else {
                say_note(&change.text);
            }
        }
        self.learn().await;
    }

    async fn set_model(&mut self, name: String) -> Result<Flow, Failure> {
        let mut args = self.args.clone();
        args.model = Some(name);
        match self.plan_anew(args).await {
            Ok(()) => {
                say_note(&format!("{} is asked from now on", self.model));
                Ok(Flow::On)
            }
            Err(failure) => Ok(self.failed(&failure.error)),
        }
    }

    fn models(&self) -> String {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let current = self.model.to_string();
        let mut text = String::new();
        let others = known.models.iter().filter(|name| **name != current);
        let _ = writeln!(text, "* {current}");
        for name in others {
            let _ = writeln!(text, "  {}", one_line(name, 100));
        }
        text
    }

    async fn tools(&mut self, server: Option<&str>) -> Result<Flow, Failure> {
        let catalog = self.catalog().await;
        let mut servers: Vec<String> = self.host.servers().into_iter().map(|it| it.name).collect();
        // None runs where a recording is had again.
        let origins = catalog.tools.iter().filter_map(|tool| tool.origin.as_ref());
        for origin in origins {
            if !servers.contains(&origin.server) {
                servers.push(origin.server.clone());
            }
        }
        if let Some(name) = server
            && !servers.iter().any(|server| server == name)
        {
            let near = nearest(name, servers.iter().map(String::as_str));
            return Ok(self.failed(&anyhow!(
                "there is no server `{name}`{}; there are: {}",
                did_you_mean(near),
                servers.join(", ")
            )));
        }
        for problem in &catalog.problems {
            say_warning(&format!("{}: {}", problem.server, problem.message));
        }
        let rows: Vec<[String; 3]> = catalog
            .tools
            .iter()
            .filter_map(|tool| {
                let (of, name) = match &tool.origin {
                    Some(origin) => (origin.server.as_str(), origin.tool.as_str()),
                    None => ("", tool.name.as_str()),
                };
                let is_meant = server.is_none_or(|server| server == of);
                is_meant.then(|| {
                    [
                        one_line(of, 40),
                        format!("{}({})", one_line(name, 64), parameters(&tool.input_schema)),
                        one_line(&tool.description, 100),
                    ]
                })
            })
            .collect();
        if rows.is_empty() {
            say_note("there are no tools");
        } else {
            self.write(&table(&rows))?;
        }
        Ok(Flow::On)
    }

    fn recipes(&mut self) -> Result<Flow, Failure> {
        let entries = match recipes::list(&self.context.environment) {
            Ok(entries) => entries,
            Err(error) => return Ok(self.failed(&error.into())),
        };
        let configured = self.context.config.run.recipe.as_deref();
        let current = self.args.recipe.as_deref().or(configured);
        let mut rows = Vec::new();
        for entry in entries {
            let mark = if current == Some(entry.name.as_str()) {
                "*"
            } else {
                " "
            };
            let about = match entry.recipe {
                Ok(recipe) => recipe.description.or(recipe.title).unwrap_or_default(),
                Err(error) => {
                    say_warning(&error.to_string());
                    continue;
                }
            };
            rows.push([mark.to_owned(), entry.name, one_line(&about, 100)]);
        }
        self.write(&table(&rows))?;
        if let Some(current) = current {
            say_note(&format!("{current} is followed; /recipe off follows none"));
        }
        Ok(Flow::On)
    }

    async fn set_recipe(&mut self, name: String) -> Result<Flow, Failure> {
        let mut args = self.args.clone();
        if matches!(name.as_str(), "off" | "none") {
            if self.context.config.run.recipe.is_some() {
                return Ok(self.failed(&anyhow!(
                    "the configuration names a recipe, which is followed unless another one is named"
                )));
            }
            args.recipe = None;
        } else {
            args.recipe = Some(name);
        }
        match self.plan_anew(args).await {
            Ok(()) => {
                say_note(&match &self.args.recipe {
                    Some(name) => format!(
                        "the recipe {name} is followed from now on, by {}",
                        self.model
                    ),
                    None => "no recipe is followed from now on".to_owned(),
                });
                Ok(Flow::On)
            }
            Err(failure) => Ok(self.failed(&failure.error)),
        }
    }

    async fn approve(&mut self, how: Option<&str>) -> Result<Flow, Failure> {
        let approve = match how {
            Some("ask") => Approve::Ask,
            Some("all") => Approve::All,
            Some("none") => Approve::None,
            Some("later") => Approve::Later,
            Some(other) => {
                return Ok(self.failed(&anyhow!(
                    "/approve takes ask, all, none or later, and not `{}`",
                    one_line(other, 40)
                )));
            }
            None => {
                let plan = self.args.plan(&self.context).await?;
                let approval = &plan.options.approval;
                let capabilities = plan.chosen.model.capabilities();
                let requires_approval =
                    capabilities.requires_approval && !approval.approved_in_advance;
                say_note(&format!(
                    "calls of tools: {}",
                    match approval.policy {
                        ApprovalPolicy::All if requires_approval => {
                            "ask (offline/planner asks before a tool that is not read-only; `/approve all` \
                             allows every one)"
                        }
                        _ if plan.later => "later (stop where you would be asked)",
                        ApprovalPolicy::All => "all (every one may run)",
                        ApprovalPolicy::None => "none (only those that say they are read-only)",
                        ApprovalPolicy::Ask => "ask (before one that does not say it is read-only)",
                    }
                ));
                return Ok(Flow::On);
            }
        };
        let mut args = self.args.clone();
        args.approve = ApproveArgs::in_person(Some(approve));
        match self.plan_anew(args).await {
            Ok(()) => {
                say_note("that holds from the next question on");
                Ok(Flow::On)
            }
            Err(failure) => Ok(self.failed(&failure.error)),
        }
    }

    async fn usage(&mut self) -> Result<Flow, Failure> {
        let Some(session) = &self.session else {
            say_note("nothing was asked in this session yet");
            return Ok(Flow::On);
        };
        let store = self.talks.sessions.store();
        let spent = Spent::of(&**store, &self.talks.owner, &session.id).await;
        match spent {
            Ok(spent) => {
                self.write(&spent.describe())?;
                Ok(Flow::On)
            }
            Err(error) => Ok(self.failed(&error.into())),
        }
    }

    /// Writes the session to a file that is not there yet, and gives what is to be said of it.
    async fn save(&self, file: Option<&str>) -> anyhow::Result<String> {
        let Some(session) = &self.session else {
            return Err(anyhow!("nothing was asked in this session yet"));
        };
        let short: String = session.id.0.chars().take(18).collect();
        let name = file.map_or_else(|| format!("chat-{short}.md"), ToOwned::to_owned);
        let path = self.context.environment.working_dir.join(&name);
        let store = self.talks.sessions.store();
        let is_json = path
            .extension()
            .is_some_and(|it| it.eq_ignore_ascii_case("json"));
        let text = if is_json {
            let mut text = String::new();
            let mut pieces = store.export(&self.talks.owner, Some(&session.id));
            while let Some(piece) = pieces.next().await {
                text.push_str(&piece?);
            }
            text
        } else {
            let messages = store.messages(&self.talks.owner, &session.id, 0).await?;
            transcript::markdown(session, &messages)
        };
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        // What was said is for whoever said it.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options
            .open(&path)
            .with_context(|| format!("{name} cannot be written; /save FILE names another one"))?;
        file.write_all(text.as_bytes())
            .with_context(|| format!("{name} cannot be written"))?;
        Ok(format!("written to {name}"))
    }
}
