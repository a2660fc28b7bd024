import { Flow, type Settings } from "./Flow.ts"

export { Flow, type Refs, type WrittenWorkflow } from "./Flow.ts"
export { or, type Ref, type Templated, text } from "./Reference.ts"

/**
 * Begins a workflow. `on` names the source whose requests start it, by its id. `Body` is the type of their bodies; without it a
 * body may have any member.
 */
export const workflow = (name: string, settings: Settings = {}) => ({
  on: <Body = unknown>(source_id: string): Flow<Body, {}> =>
    new Flow({
      written: { name, ...settings, source_id },
      steps: [],
      edges: [],
      ends: [{ step: "trigger" }],
      list: null
    })
})
