import { expectTypeOf, it } from "vitest"
import type { Answered, Sent, Source, Trace } from "./Contract.ts"

/** These tests are proved by the type check; at run time nothing can fail. */

it("a call answers what its method and path do, whatever stands in for the parameters", () => {
  expectTypeOf<Answered<"GET", `/requests/${string}/trace`>>().toEqualTypeOf<Trace>()
  expectTypeOf<Answered<"GET", `/events/${string}`>["webhook_id"]>().toBeString()
  expectTypeOf<Answered<"PUT", `/sources/${string}/disable`>>().toEqualTypeOf<Source>()
  expectTypeOf<Answered<"DELETE", `/sources/${string}`>["deleted"]>().toEqualTypeOf<true>()
  expectTypeOf<Answered<"GET", `/transformations/${string}/executions/${string}`>["code_hash"]>().toBeString()
})

it("words of a path come before its parameters, and a query changes nothing", () => {
  expectTypeOf<Answered<"GET", "/events/count">["total"]>().toBeNumber()
  expectTypeOf<
    Answered<"GET", `/requests?source_id=${string}&include=data`>["models"][number]["status"]
  >().toEqualTypeOf<"accepted" | "rejected">()
})

it("nothing is known of what the contract does not have, or has no such member", () => {
  expectTypeOf<Answered<"GET", "/nothing">>().toBeUnknown()
  expectTypeOf<Answered<"PATCH", "/sources">>().toBeUnknown()
  expectTypeOf<Answered<"GET", string>>().toBeUnknown()
  expectTypeOf<Source>().not.toHaveProperty("nothing")
})

it("a call takes what its endpoint does", () => {
  expectTypeOf<{ name: string; code: string }>().toExtend<Sent<"POST", "/transformations">>()
  expectTypeOf<{ name: number; code: string }>().not.toExtend<Sent<"POST", "/transformations">>()
  expectTypeOf<{ name: string; rules: [{ type: "nothing" }] }>().not.toExtend<Sent<"POST", "/connections">>()
})
