/**
 * What document 1 promises, as data: a list of facts, each with the test that proves it. `docs/coverage.md` counts them. The lists
 * are compared with the contract, so that nothing is promised that has no row and no row names what is not there.
 */

/** A test, by its file and its title as it is written there. */
export interface Proof {
  readonly file: string
  readonly test: string
}

/** Why there is nothing to prove yet. */
export interface Missing {
  readonly missing: string
}

/** Facts that one test proves. */
export type Row = readonly [facts: ReadonlyArray<string>, proof: Proof | Missing]

export interface Section {
  readonly title: string
  /** `POST /sources`; `PUT,POST /sources/{id}/enable` are two. */
  readonly endpoints: ReadonlyArray<Row>
  /**
   * Members of one or more components. `a.*` is all below `a`. Those that are always there in an answer need no row: the test that
   * sends every example proves them.
   */
  readonly fields: Readonly<Record<string, ReadonlyArray<Row>>>
  readonly states?: ReadonlyArray<Row>
  readonly limits?: ReadonlyArray<Row>
}

/** The tests of a file, by their titles. */
export const tests =
  (file: string) =>
  (test: string): Proof => ({ file, test })

/** A row of facts that are written one after the other: endpoints and members have no spaces but one. */
export const row = (facts: string, proof: Proof | Missing): Row => [facts.trim().split(/\s*;\s*|\s*\n\s*/), proof]

/** The same of members, which are separated by spaces. */
export const of = (members: string, proof: Proof | Missing): Row => [members.trim().split(/\s+/), proof]

export const missing = (why: string): Missing => ({ missing: why })

const document = tests("test/contract/openapi/Document.test.ts")
/** Each operation's example is sent, and the answer has to be of the schema, with all that is always there. */
export const shape = document("is taken, and answered with the status and in the shape that are stated")
/** Each type of source is made with each setting that its schema requires. */
export const sourceTypes = document("every source type takes the settings that its schema requires")
