/** What people see of a source type before they know its settings. */
export interface Introduction {
  /** The name by which people know the provider. */
  readonly name: string
  /** What its sources receive: one sentence. */
  readonly description: string
  /** The provider's own page about its webhooks. */
  readonly documentation: string
  /**
   * What to do at the provider and here, in order. Texts in backticks are names of settings, events and values. A step names a place in the
   * provider's menus only as far as it is certain.
   */
  readonly setup: ReadonlyArray<string>
}
