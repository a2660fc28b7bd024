/** What one workflow may amount to. */
export const limits = {
  steps: 100,
  edges: 250,
  paths: 10,
  /** Elements that a step with `for_each` runs for, one after the other. */
  iterations: 500,
  /** Steps of one run that are on their way at once. */
  parallelSteps: 5,
  /** Times that one run is begun: its own, and what retries of its steps make of it. All that was stored of it is read with each. */
  beginnings: 100,
  /** Members of one step's config. */
  configMembers: 50,
  /** Tokens in the inputs and mappings of all steps together. */
  tokens: 5_000,
  /** Values of one step, or edge, as it is written: itself, its members and elements, and theirs. */
  partValues: 10_000,
  /** Of all steps and edges. */
  values: 20_000,
  /** Of the definition as JSON, in bytes. */
  definitionBytes: 1_048_576,
  /** Of one step's inputs as JSON, or of what it gives, for all elements of its list, in characters. */
  valueLength: 1_048_576,
  /** Of what the steps of one run give, all together. */
  runLength: 10_485_760,
  /** Of what previews show that are stored with one part of a run, in characters: a join of many branches has as many. */
  previews: 1_048_576,
  /** Of one attempt of a step: they are stored with each part of its run. */
  warnings: 100,
  /** Of what a step failed of, in characters; the same. */
  messageLength: 2_000,
  codeLength: 100,
  /** Of the place that a warning names, and of what it says; the same. */
  warningLength: 300,
  /** Milliseconds. */
  longestDelay: 31 * 24 * 60 * 60 * 1_000
} as const
