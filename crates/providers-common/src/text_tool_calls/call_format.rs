//! The formats of tool calls that models write as text.

/// A format of tool calls that models write as text, such as `<tool_call>{…}</tool_call>`.
///
/// Sources: the models' chat templates, vLLM's tool parsers and llama.cpp's chat tests, as of
/// November 2026.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TextCallFormat {
    /// A Markdown block that contains only calls as JSON:
    /// ```` ```json {"name": …, "arguments": {…}} ``` ````.
    /// Small models without a special format for calls write it, such as Qwen2.5-Coder. If the
    /// answer also has other text, the block counts as an example and is not executed.
    FencedJson,
    /// `<tool_call>…</tool_call>`, with any of these inside: JSON (`{"name": …, "arguments": …}`,
    /// Hermes 2 and 3, Qwen 2.5 and 3, Granite 4), a list of them (Granite 3.1),
    /// `<function=name><parameter=key>value</parameter></function>` (Qwen3-Coder, Nemotron), or
    /// `name<arg_key>key</arg_key><arg_value>value</arg_value>` (GLM 4.5 and later).
    ToolCallTag,
    /// `[TOOL_CALLS]` and then a JSON list of calls (Mistral to the v7 tokenizer),
    /// `name{…}` (v11) or `name[CALL_ID]id[ARGS]{…}` (v13).
    MistralToken,
    /// `<function=name>{…}</function>` (Llama 3.1, Functionary), also with `<parameter=key>`
    /// elements instead of JSON.
    FunctionTag,
    /// `[name(key="value", …), …]` at the beginning of a line (Llama 3.2, Olmo 3), also between
    /// `<|python_start|>` and `<|python_end|>` (Llama 4) or `<|tool_call_start|>` and
    /// `<|tool_call_end|>` (LFM 2).
    Pythonic,
    /// A JSON object with the name and the input of a tool, or a list of such objects, at the
    /// beginning of a line and outside of Markdown blocks; also after `<|python_tag|>` (Llama 3.1).
    BareJson,
    /// The special tokens of `DeepSeek`: `<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>…`, with
    /// `function<｜tool▁sep｜>name` and a JSON block (V3, R1) or `name<｜tool▁sep｜>{…}` (V3.1).
    DeepSeek,
    /// `<|tool_call|>` and a JSON list of calls (Granite 3.0, Phi-4-mini).
    Granite,
}

impl TextCallFormat {
    /// All formats, in the order of their comparison with a text.
    pub const ALL: [Self; 8] = [
        Self::ToolCallTag,
        Self::FunctionTag,
        Self::MistralToken,
        Self::DeepSeek,
        Self::Granite,
        Self::FencedJson,
        Self::Pythonic,
        Self::BareJson,
    ];

    /// Returns the name of the format in configuration files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::FencedJson => "fenced_json",
            Self::ToolCallTag => "tool_call_tag",
            Self::MistralToken => "mistral_token",
            Self::FunctionTag => "function_tag",
            Self::Pythonic => "pythonic",
            Self::BareJson => "bare_json",
            Self::DeepSeek => "deepseek",
            Self::Granite => "granite",
        }
    }

    /// Returns the format that has this name in configuration files.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|form| form.as_str() == name)
    }

    const fn bit_mask(self) -> u16 {
        1 << self as u16
    }
}

/// The set of formats in which an answer's text is searched for tool calls.
///
/// ```
/// use switchboard_providers_common::text_tool_calls::{TextCallFormat, TextCallFormats};
///
/// const SMALL_MODELS: TextCallFormats =
///     TextCallFormats::from_forms(&[TextCallFormat::FencedJson, TextCallFormat::ToolCallTag]);
/// assert!(SMALL_MODELS.contains(TextCallFormat::FencedJson));
/// assert!(!SMALL_MODELS.contains(TextCallFormat::Pythonic));
/// assert!(TextCallFormats::NONE.is_empty());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct TextCallFormats(u16);

impl TextCallFormats {
    /// Empty set. No tool calls are searched for in the text.
    pub const NONE: Self = Self(0);
    /// Set of all formats.
    pub const ALL: Self = Self::from_forms(&TextCallFormat::ALL);
    /// The formats in which local servers (llama.cpp, Ollama) leave calls in the text, because
    /// their parser expects another format of the model. All except Pythonic calls, which look like
    /// code that the user requested.
    pub const LOCAL_SERVERS: Self = Self::from_forms(&[
        TextCallFormat::FencedJson,
        TextCallFormat::ToolCallTag,
        TextCallFormat::FunctionTag,
        TextCallFormat::BareJson,
        TextCallFormat::MistralToken,
        TextCallFormat::Granite,
        TextCallFormat::DeepSeek,
    ]);

    /// Creates a set of the listed formats.
    pub const fn from_forms(forms: &[TextCallFormat]) -> Self {
        let mut set = Self::NONE;
        let mut at = 0;
        while at < forms.len() {
            set = set.with_form(forms[at]);
            at += 1;
        }
        set
    }

    /// Returns the set with a format added to it.
    #[must_use]
    pub const fn with_form(self, form: TextCallFormat) -> Self {
        Self(self.0 | form.bit_mask())
    }

    /// Returns whether the set contains a format.
    pub const fn contains(self, form: TextCallFormat) -> bool {
        self.0 & form.bit_mask() != 0
    }

    /// Returns whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the formats of the set, in the order of their comparison with a text.
    pub fn iter(self) -> impl Iterator<Item = TextCallFormat> {
        TextCallFormat::ALL
            .into_iter()
            .filter(move |form| self.contains(*form))
    }
}

impl FromIterator<TextCallFormat> for TextCallFormats {
    fn from_iter<I: IntoIterator<Item = TextCallFormat>>(forms: I) -> Self {
        forms.into_iter().fold(Self::NONE, Self::with_form)
    }
}
