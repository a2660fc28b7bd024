import type { HttpApi, HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import type { Api } from "../../packages/api/src/contract/Api.ts"

/**
 * The types of the control API's bodies and answers, derived from its contract: `Answered<"GET", "/requests/${string}/trace">` is
 * a trace.
 */

type Groups<A> = A extends HttpApi.HttpApi<string, infer Group> ? Group : never
type Endpoints = HttpApiGroup.Endpoints<Groups<typeof Api>>

/** A path of the contract with `:` for each parameter: `/requests/:/trace`. */
type Declared<Path extends string> = Path extends `${infer Segment}/${infer Rest}`
  ? `${DeclaredSegment<Segment>}/${Declared<Rest>}`
  : DeclaredSegment<Path>
type DeclaredSegment<Segment extends string> = Segment extends `:${string}` ? ":" : Segment

/**
 * The calls by method and path. Decoded and encoded types are the same in this API, so these are also the types of the JSON that
 * is sent.
 */
type Calls = {
  readonly [Endpoint in Endpoints as `${Endpoint["method"]} ${Declared<Endpoint["path"]>}`]: {
    readonly sent: HttpApiEndpoint.Payload<Endpoint>["Type"]
    readonly answered: HttpApiEndpoint.Success<Endpoint>["Type"]
  }
}

/** The path that a test calls, in the same form. A segment with an inserted value is a parameter. A query may follow. */
type Called<Path extends string> = Path extends `${infer Before}?${string}` ? CalledPath<Before> : CalledPath<Path>
type CalledPath<Path extends string> = Path extends `${infer Segment}/${infer Rest}`
  ? `${CalledSegment<Segment>}/${CalledPath<Rest>}`
  : CalledSegment<Path>
/** For a template type, the record of its keys may be empty; for a literal type it may not. */
type CalledSegment<Segment extends string> = {} extends Record<Segment, true> ? ":" : Segment

/** If method or path are known only at run time, the type of the call is unknown. */
type Call<Method extends string, Path extends string> = `${Method} ${Called<Path>}` extends infer Call extends
  keyof Calls
  ? Calls[Call]
  : { readonly sent: unknown; readonly answered: unknown }

export type Sent<Method extends string, Path extends string> = Call<Method, Path>["sent"]
export type Answered<Method extends string, Path extends string> = Call<Method, Path>["answered"]

/**
 * The settings of a source. Additional settings belong to a provider's type and are known only to its row, so tests of many types
 * cast.
 */
export type SourceConfig = NonNullable<Generic<Sent<"POST", "/sources">>["config"]>
type Generic<Write> = Write extends { readonly type: string } ? never : Write

export type DestinationConfig = NonNullable<Sent<"POST", "/destinations">["config"]>
export type Rules = NonNullable<Sent<"POST", "/connections">["rules"]>
export type Rule = Rules[number]

export type Source = Answered<"POST", "/sources">
export type Destination = Answered<"POST", "/destinations">
export type Connection = Answered<"POST", "/connections">
export type Transformation = Answered<"POST", "/transformations">
export type Execution = Answered<"GET", `/transformations/${string}/executions`>["models"][number]
export type Event = Answered<"GET", `/events/${string}`>
export type Trace = Answered<"GET", `/requests/${string}/trace`>
export type Attempt = Trace["attempts"][number]
export type ProxyExchange = NonNullable<Trace["proxy_exchange"]>
