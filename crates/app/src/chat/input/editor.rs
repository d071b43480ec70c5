//! Line editor for questions to the model and for replies to the program, at a terminal.

use std::{
    borrow::Cow,
    io,
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use reedline::{
    Color, ColumnarMenu, DefaultHinter, EditCommand, Emacs, FileBackedHistory, KeyCode,
    KeyModifiers, MenuBuilder as _, Prompt, PromptEditMode, PromptHistorySearch,
    PromptHistorySearchStatus, Reedline, ReedlineEvent, ReedlineMenu, Signal, ValidationResult,
    Validator, default_emacs_keybindings,
};
use serde::de::IgnoredAny;
use tokio::time::timeout;

use super::completion::{NameCompleter, SharedNames};
use crate::{
    config::environment::Environment,
    run_session::interrupts::{CtrlCPresses, Interrupts},
    storage::private_file,
    terminal::{LineReader, UnansweredReason, print_line, print_warning, strip_control_characters},
};

/// Maximum number of questions in the history file of the line editor.
const HISTORY: usize = 1_000;
/// Maximum time to wait until the editor stops. The editor checks its stop flag every 100 ms.
const STOP_TIMEOUT: Duration = Duration::from_secs(1);
const MENU: &str = "words";

/// Result of reading one line from the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum InputLine {
    Text(String),
    Interrupted,
    /// The input has ended: the user pressed Ctrl-D, or the terminal was closed.
    End,
}

/// Line editor of a terminal. Clones share one terminal, and only one of them reads at a time.
#[derive(Clone)]
pub(crate) struct LineEditor {
    /// Editor for questions to the model, with history. While another editor reads the reply to a
    /// question of the program, the lock is held too, so that only one editor uses the terminal.
    main: Arc<Mutex<Reedline>>,
    /// Flag that stops the editor for questions to the model. If it is `true`, the editor returns
    /// without input.
    stop: Arc<AtomicBool>,
    colours: bool,
    /// Receiver of Ctrl-C presses, which cancel a run and do not end the program.
    pub(crate) presses: CtrlCPresses,
}

impl LineEditor {
    /// Creates an editor whose history is in a file that only the user can read. From then on,
    /// Ctrl-C counts as a key press and does not end the program.
    pub(crate) fn new(
        environment: &Environment,
        known: SharedNames,
        interrupts: &Interrupts,
    ) -> Self {
        let colours = environment.get("NO_COLOR").is_none();
        let presses = interrupts.capture_ctrl_c();
        interrupts.detect_closed_terminal();
        let stop = Arc::new(AtomicBool::new(false));
        let mut keys = default_emacs_keybindings();
        let open_menu = ReedlineEvent::Menu(MENU.to_owned());
        let complete = ReedlineEvent::UntilFound(vec![open_menu, ReedlineEvent::MenuNext]);
        keys.add_binding(KeyModifiers::NONE, KeyCode::Tab, complete);
        let hint = if colours {
            Color::Default.dimmed()
        } else {
            Color::Default.normal()
        };
        let menu = ColumnarMenu::default().with_name(MENU);
        let mut main = create_plain_editor(colours, &stop)
            .with_edit_mode(Box::new(Emacs::new(keys)))
            .with_completer(Box::new(NameCompleter(known)))
            .with_menu(ReedlineMenu::EngineCompleter(Box::new(menu)))
            .with_partial_completions(true)
            .with_quick_completions(true)
            .with_hinter(Box::new(DefaultHinter::default().with_style(hint)))
            .with_validator(Box::new(ContinuedLineValidator))
            // Lines that start with a space are not saved in the history, as in shells.
            .with_history_exclusion_prefix(Some(" ".to_owned()));
        let history = environment.data_dir.as_ref();
        let history = history.map(|folder| open_history_file(folder.join("chat-history")));
        match history.transpose() {
            Ok(Some(history)) => main = main.with_history(history),
            Ok(None) => {}
            Err(error) => {
                print_warning(&format!("failed to open the history of questions: {error}"));
            }
        }
        Self {
            main: Arc::new(Mutex::new(main)),
            stop,
            colours,
            presses,
        }
    }

    /// Reads a question for the model. Returns [`InputLine::Interrupted`] if the user presses
    /// Ctrl-C, and [`InputLine::End`] after an interruption such as `SIGTERM`.
    pub(crate) async fn read_question(&self, interrupts: &Interrupts) -> io::Result<InputLine> {
        if interrupts.is_interrupted() {
            return Ok(InputLine::End);
        }
        let main = Arc::clone(&self.main);
        let mut reading = tokio::task::spawn_blocking(move || {
            let mut editor = main.lock().unwrap_or_else(PoisonError::into_inner);
            let line = signal_to_input_line(editor.read_line(&EditorPrompt::QUESTION));
            // An error is ignored, because an unsaved history must not stop the conversation.
            let _ = editor.sync_history();
            line
        });
        let line = tokio::select! {
            line = &mut reading => line,
            () = interrupts.wait_for_first_interruption() => {
                // Waits until the editor has stopped, because the editor then restores the terminal
                // mode.
                self.stop.store(true, Ordering::Relaxed);
                match timeout(STOP_TIMEOUT, &mut reading).await {
                    Ok(line) => line,
                    // The editor did not stop in time: the terminal is closed, and the editor
                    // continues to read from it.
                    Err(_) => return Ok(InputLine::End),
                }
            }
        };
        line.map_err(io::Error::other)?.map(|line| match line {
            InputLine::Text(text) => InputLine::Text(join_continued_lines(&text)),
            other => other,
        })
    }

    /// Reads the reply to a question of the program, such as an approval request. If `text` is set,
    /// the user edits this text, and the reply is the edited text. Returns [`InputLine::End`] if
    /// the terminal cannot be read.
    async fn read_user_reply(&self, prompt: EditorPrompt, text: Option<String>) -> InputLine {
        let (main, colours) = (Arc::clone(&self.main), self.colours);
        // Stops only this line editor if the caller drops the future. `self.stop` would also stop
        // the editor that asks the user about tool calls.
        let stop = Arc::new(AtomicBool::new(false));
        let _guard = EditorStopGuard(Arc::clone(&stop));
        let reading = tokio::task::spawn_blocking(move || {
            let _terminal = main.lock().unwrap_or_else(PoisonError::into_inner);
            let mut editor = create_plain_editor(colours, &stop);
            if let Some(text) = text {
                editor = editor.with_validator(Box::new(CompleteJsonValidator));
                editor.run_edit_commands(&[EditCommand::InsertString(text)]);
            }
            signal_to_input_line(editor.read_line(&prompt))
        });
        match reading.await {
            Ok(Ok(line)) => line,
            _ => InputLine::End,
        }
    }
}

/// Guard that stops a line editor when it is dropped, because the caller no longer waits for the
/// reply.
struct EditorStopGuard(Arc<AtomicBool>);

impl Drop for EditorStopGuard {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[async_trait]
impl LineReader for LineEditor {
    fn is_interactive(&self) -> bool {
        true
    }

    async fn prompt_for_line(&self, question: String) -> Result<String, UnansweredReason> {
        print_line(question);
        match self.read_user_reply(EditorPrompt::ANSWER, None).await {
            InputLine::Text(text) => Ok(text),
            InputLine::Interrupted => {
                self.presses.count_ctrl_c_key();
                Err(UnansweredReason::Interrupted)
            }
            InputLine::End => Err(UnansweredReason::Ended),
        }
    }

    fn can_edit_text(&self) -> bool {
        true
    }

    async fn edit_text(&self, question: String, text: String) -> Option<String> {
        print_line(format_args!(
            "{question} (Enter: accept · Alt+Enter: new line · Ctrl-C: cancel)"
        ));
        // Control characters are removed before editing, so that the user sees exactly what is
        // sent.
        let text = strip_control_characters(&text).into_owned();
        match self.read_user_reply(EditorPrompt::EDIT, Some(text)).await {
            InputLine::Text(text) => Some(text),
            InputLine::Interrupted | InputLine::End => None,
        }
    }
}

/// Creates a line editor without history, because replies are not saved.
fn create_plain_editor(colours: bool, stop: &Arc<AtomicBool>) -> Reedline {
    Reedline::create()
        .with_ansi_colors(colours)
        .with_break_signal(Arc::clone(stop))
        .use_bracketed_paste(true)
}

fn open_history_file(path: PathBuf) -> io::Result<Box<FileBackedHistory>> {
    private_file::open_or_create_file(&path)?;
    let history = FileBackedHistory::with_file(HISTORY, path).map_err(io::Error::other)?;
    Ok(Box::new(history))
}

fn signal_to_input_line(signal: io::Result<Signal>) -> io::Result<InputLine> {
    Ok(match signal? {
        Signal::Success(text) => InputLine::Text(text),
        Signal::CtrlC => InputLine::Interrupted,
        _ => InputLine::End,
    })
}

/// Joins continued lines: removes each backslash before a line break and keeps the line break.
pub(crate) fn join_continued_lines(text: &str) -> String {
    text.replace("\\\n", "\n")
}

/// Validator that continues the input after a line that ends with a backslash.
struct ContinuedLineValidator;

impl Validator for ContinuedLineValidator {
    fn validate(&self, line: &str) -> ValidationResult {
        if line.ends_with('\\') {
            ValidationResult::Incomplete
        } else {
            ValidationResult::Complete
        }
    }
}

/// Validator that continues the input until the JSON value is complete. Other JSON errors are
/// reported when the input is parsed.
struct CompleteJsonValidator;

impl Validator for CompleteJsonValidator {
    fn validate(&self, line: &str) -> ValidationResult {
        match serde_json::from_str::<IgnoredAny>(line) {
            Err(error) if error.is_eof() && !line.trim().is_empty() => ValidationResult::Incomplete,
            _ => ValidationResult::Complete,
        }
    }
}

/// Texts that the editor prints before the first line of input and before each following line.
#[derive(Debug, Clone, Copy)]
struct EditorPrompt(&'static str, &'static str);

impl EditorPrompt {
    const QUESTION: Self = Self("❯ ", "… ");
    const ANSWER: Self = Self("  › ", "    ");
    const EDIT: Self = Self("  ", "  ");
}

impl Prompt for EditorPrompt {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_indicator(&self, _: PromptEditMode) -> Cow<'_, str> {
        Cow::Borrowed(self.0)
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        Cow::Borrowed(self.1)
    }

    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        let found = match search.status {
            PromptHistorySearchStatus::Passing => "",
            PromptHistorySearchStatus::Failing => "no match for ",
        };
        Cow::Owned(format!("({found}{}) ", search.term))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_json_input_continues_until_it_is_closed() {
        let goes_on = |text: &str| {
            matches!(
                CompleteJsonValidator.validate(text),
                ValidationResult::Incomplete
            )
        };
        assert!(goes_on("{\"a\": [1,") && goes_on("{"));
        assert!(!goes_on("{\"a\": 1}") && !goes_on("{]") && !goes_on(""));
    }

    #[cfg(unix)]
    #[test]
    fn the_history_file_is_private() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/history");
        drop(open_history_file(path.clone()).unwrap());
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
