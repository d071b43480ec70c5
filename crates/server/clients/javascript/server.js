// The servers under test. `cargo xtask clients` starts them and passes their URLs as environment
// variables.

function requiredVariable(name) {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set: run \`cargo xtask clients\``);
  return value;
}

// Allows all tool calls.
export const AUTO_APPROVE_URL = requiredVariable("SWITCHBOARD_URL");
// Requires approval for tools that change data.
export const APPROVAL_URL = requiredVariable("SWITCHBOARD_ASKING_URL");
export const headers = { Authorization: `Bearer ${requiredVariable("SWITCHBOARD_TOKEN")}` };

export const ACCOUNT_QUESTION = "What is the account value of customer 42?";
// Result of the bundled customer-service server for ACCOUNT_QUESTION.
export const ACCOUNT_VALUE = "530.19";
export const TICKET_REQUEST = 'Create a support ticket for customer 42 with the subject "The invoice is wrong"';
