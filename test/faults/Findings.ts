/** The promises of the gateway that these tests check. */
export type Promised =
  | "an acknowledged request is stored"
  | "senders get 2xx, or 503 with Retry-After"
  | "ingress does not depend on runners"
  | "one request, one event per connection"
  | "one event of a group"
  | "nothing is ignored without its rule"
  | "what was transformed has its execution"
  | "what is accepted comes to an end"
  | "attempts are recorded once, without gaps"
  | "a recorded success was received"
  | "what was delivered is recorded"
  | "what is delivered is what was sent"
  | "retries and delays keep to their rule"
  | "a rate is kept"
  | "events of one key arrive in ingest order"
  | "events of one key arrive one at a time"
  | "nothing is delivered twice without a crash"
  | "who lost a shard delivers nothing from it"
  | "deliveries go on in time"
  | "one bad target costs the others nothing"
  | "counts are exact"
  | "a bulk retry makes one event of each"
  | "operators get an answer, or 503"
  | "a process ends by SIGTERM"
  | "a process does not end by itself"
  | "the harness could do its part"

const maxExamples = 3

/** The broken promises of a round, with a few examples of each. */
export class Findings {
  readonly #broken = new Map<Promised, { count: number; readonly examples: Array<string> }>()

  broke(promised: Promised, example: string): void {
    const known = this.#broken.get(promised)
    if (known === undefined) this.#broken.set(promised, { count: 1, examples: [example] })
    else {
      known.count++
      if (known.examples.length < maxExamples) known.examples.push(example)
    }
  }

  count(promised: Promised): number {
    return this.#broken.get(promised)?.count ?? 0
  }

  get isClean(): boolean {
    return this.#broken.size === 0
  }

  /** One line per example, indented under its promise. */
  get lines(): ReadonlyArray<string> {
    return [...this.#broken].flatMap(([promised, { count, examples }]) =>
      [`BROKEN ${count} x: ${promised}`].concat(examples.map((example) => `    ${example}`))
    )
  }
}
