import { useQuery } from "@tanstack/react-query"
import { useRef, useState } from "react"
import { messageOf } from "../../../gateway.ts"
import { Fields, valuesIn } from "../../../parts/Fields.tsx"
import type { Document } from "../../../parts/Schema.ts"
import type { Step } from "../../../parts/StepGraph.ts"
import { useSession } from "../../../session.ts"
import { maxPaths } from "./Paths.ts"
import { configOf, inputsOf, type ResourceList, resourcesOf } from "./StepKinds.ts"

/** The team's resources that a step can refer to. */
const useResources = (list: ResourceList | null): ReadonlyArray<{ readonly id: string; readonly name: string }> => {
  const { client, team } = useSession()
  const { data } = useQuery({
    queryKey: ["step resources", team, list],
    queryFn: () => client.get(`/${list!}`, { params: { query: { limit: 255 } } }),
    enabled: list !== null
  })
  return list === null ? [] : (data?.models ?? [])
}

/** The settings of a step, by the schema of its kind. */
export const StepForm = ({
  change,
  document,
  paths,
  step
}: {
  readonly document: Document
  readonly step: Step
  readonly paths: ReadonlyArray<string>
  readonly change: (step: Step) => void
}) => {
  const form = useRef<HTMLFormElement>(null)
  const field = useRef<HTMLInputElement | HTMLTextAreaElement>(null)
  const [fault, setFault] = useState<string | null>(null)
  const inputs = inputsOf(document, step.kind)
  const list = resourcesOf(document, step.kind)
  const resources = useResources(list)
  const collect = () => {
    if (form.current === null) return
    try {
      const own = valuesIn(form.current, "step.")
      const config = valuesIn(form.current, "config.")
      const { invocation_inputs, name: _, resource_id: __, ...rest } = step
      // What has no field here stays.
      const kept = inputs !== null || invocation_inputs === undefined ? {} : { invocation_inputs }
      change({ ...rest, ...kept, ...own, config } as Step)
      setFault(null)
    } catch (error) {
      setFault(messageOf(error))
    }
  }
  const insert = (path: string) => {
    const into = field.current
    if (into === null || path === "") return
    into.setRangeText(`{{${path}}}`, into.selectionStart ?? 0, into.selectionEnd ?? 0, "end")
    into.focus()
    collect()
  }
  return (
    <form
      ref={form}
      onChange={collect}
      onSubmit={(event) => event.preventDefault()}
      onFocus={({ target }) => {
        const isText =
          target instanceof HTMLTextAreaElement || (target instanceof HTMLInputElement && target.type === "text")
        if (isText) field.current = target
      }}
    >
      <div className="field">
        <label htmlFor="step.name">Name</label>
        <input id="step.name" name="step.name" defaultValue={step.name ?? ""} autoComplete="off" />
      </div>
      {list === null ? null : (
        <div className="field">
          <label htmlFor="step.resource_id">{list.slice(0, -1)}</label>
          <select
            key={resources.length}
            id="step.resource_id"
            name="step.resource_id"
            defaultValue={step.resource_id ?? ""}
          >
            <option value="">–</option>
            {resources.map(({ id, name }) => (
              <option key={id} value={id}>
                {name}
              </option>
            ))}
            {step.resource_id == null || resources.some(({ id }) => id === step.resource_id) ? null : (
              <option>{step.resource_id}</option>
            )}
          </select>
        </div>
      )}
      {inputs === null ? null : (
        <Fields
          document={document}
          schema={{ properties: { invocation_inputs: inputs } }}
          prefix="step."
          values={{ invocation_inputs: step.invocation_inputs }}
        />
      )}
      <div className="field">
        <label htmlFor="insert">Insert a value of the sample</label>
        <select id="insert" name="insert" value="" onChange={({ target }) => insert(target.value)}>
          <option value="">Put the cursor into a field, then choose…</option>
          {paths.slice(0, maxPaths).map((path) => (
            <option key={path}>{path}</option>
          ))}
        </select>
      </div>
      <Fields document={document} schema={configOf(document, step.kind)} prefix="config." values={step.config ?? {}} />
      {fault === null ? null : (
        <p role="alert" className="notice bad">
          {fault}. The step keeps its last valid settings.
        </p>
      )}
    </form>
  )
}
