/** The limits of one workflow. */
export const limits = {
  steps: 100,
  edges: 250,
  paths: 10,
  /** Elements that a step with `for_each` runs for, one after the other. */
  iterations: 500,
  /** Steps of one run that are under way at once. */
  parallelSteps: 5,
  /** How often one run is started: once, and by retries of its steps. All of its journal entries are read each time. */
  beginnings: 100,
  /** Members of one step's config. */
  configMembers: 50,
  /** Tokens in the inputs and mappings of all steps together. */
  tokens: 5_000,
  /** JSON values of one step or edge: itself, its members and elements, and theirs. */
  partValues: 10_000,
  /** JSON values of all steps and edges. */
  values: 20_000,
  /** The definition as JSON, in bytes. */
  definitionBytes: 1_048_576,
  /** One step's inputs as JSON, or its output for all elements of its list, in characters. */
  valueLength: 1_048_576,
  /** The outputs of all steps of one run together. */
  runLength: 10_485_760,
  /** Previews that are stored with one journal entry of a run, in characters: a join has as many as branches. */
  previews: 1_048_576,
  /** Warnings of one attempt of a step: they are stored in each journal entry of the step. */
  warnings: 100,
  /** The error message of a step, in characters; stored in the same way. */
  messageLength: 2_000,
  codeLength: 100,
  /** The label of a run, and the template for it, in characters. */
  labelLength: 200,
  labelTemplateLength: 1_000,
  /** The body of an answer in the error of a step, as JSON, in characters. */
  answerLength: 65_536,
  /** The place and the message of a warning; stored in the same way. */
  warningLength: 300,
  /** Milliseconds. */
  longestDelay: 31 * 24 * 60 * 60 * 1_000
} as const
