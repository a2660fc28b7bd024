import type { HttpApi, HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import type { Api } from "../../packages/api/src/contract/Api.ts"

/** What the control API takes and answers, derived from its contract: `Answered<"GET", "/requests/${string}/trace">` is a trace. */

type Groups<A> = A extends HttpApi.HttpApi<string, infer Group> ? Group : never
type Endpoints = HttpApiGroup.Endpoints<Groups<typeof Api>>

/** A path of the contract with `:` for each parameter: `/requests/:/trace`. */
type Declared<Path extends string> = Path extends `${infer Segment}/${infer Rest}`
  ? `${DeclaredSegment<Segment>}/${Declared<Rest>}`
  : DeclaredSegment<Path>
type DeclaredSegment<Segment extends string> = Segment extends `:${string}` ? ":" : Segment

/** By method and path. No JSON of this API is decoded to anything but itself: these are also what goes over the wire. */
type Calls = {
  readonly [Endpoint in Endpoints as `${Endpoint["method"]} ${Declared<Endpoint["path"]>}`]: {
    readonly sent: HttpApiEndpoint.Payload<Endpoint>["Type"]
    readonly answered: HttpApiEndpoint.Success<Endpoint>["Type"]
  }
}

/** A path as a test calls it, in the same form: a parameter is a segment that something is put into. A query may follow. */
type Called<Path extends string> = Path extends `${infer Before}?${string}` ? CalledPath<Before> : CalledPath<Path>
type CalledPath<Path extends string> = Path extends `${infer Segment}/${infer Rest}`
  ? `${CalledSegment<Segment>}/${CalledPath<Rest>}`
  : CalledSegment<Path>
/** A text that is one of many makes a record that may be empty. */
type CalledSegment<Segment extends string> = {} extends Record<Segment, true> ? ":" : Segment

/** Of a call whose method or path is known only when it is made, nothing is known. */
type Call<Method extends string, Path extends string> = `${Method} ${Called<Path>}` extends infer Call extends
  keyof Calls
  ? Calls[Call]
  : { readonly sent: unknown; readonly answered: unknown }

export type Sent<Method extends string, Path extends string> = Call<Method, Path>["sent"]
export type Answered<Method extends string, Path extends string> = Call<Method, Path>["answered"]

/** What a source is set up with. What a provider's type has beside that, its row alone knows: tests of many types cast it. */
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
