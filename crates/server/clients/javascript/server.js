// The servers that the tests talk to: `cargo xtask clients` starts them and says where they are.

function needed(name) {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set: run \`cargo xtask clients\``);
  return value;
}

// Nothing needs a person's word here.
export const FREE = needed("SWITCHBOARD_URL");
// Here tools that change something do.
export const ASKING = needed("SWITCHBOARD_ASKING_URL");
export const headers = { Authorization: `Bearer ${needed("SWITCHBOARD_TOKEN")}` };

export const QUESTION = "What is the account value of customer 42?";
// What the bundled customer-service server says of customer 42.
export const VALUE = "530.19";
export const CHANGE = 'Create a support ticket for customer 42 with the subject "The invoice is wrong"';
