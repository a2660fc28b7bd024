/** What is different each time a sample is sent: receivers that drop repetitions would see it only once otherwise. */
export interface Moment {
  /** Unix time. */
  readonly seconds: number
  /** ISO 8601. */
  readonly iso: string
  /** Returns letters and digits, other ones at each call. */
  readonly id: (length: number) => string
  /** Returns lower-case hexadecimal digits, other ones at each call. */
  readonly hex: (length: number) => string
  /** Returns a UUID, another one at each call. */
  readonly uuid: () => string
}

type Json = string | number | boolean | null | ReadonlyArray<Json> | { readonly [member: string]: Json }

/** An event as its provider sends it, without its signature. */
export interface Sample {
  /** The name by which the provider's documentation calls the event. */
  readonly event: string
  readonly headers?: (now: Moment) => Readonly<Record<string, string>>
  /** Texts only if the provider posts forms. */
  readonly body: (now: Moment) => { readonly [member: string]: Json }
}

/** The samples of a provider. */
export interface Samples {
  /** The source type. */
  readonly type: string
  /** The public documentation that has the shapes. */
  readonly documentation: string
  readonly posts: "json" | "form"
  readonly samples: ReadonlyArray<Sample>
}
