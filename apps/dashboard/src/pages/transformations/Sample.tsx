import { useQuery } from "@tanstack/react-query"
import { useState } from "react"
import type { Row } from "../../gateway.ts"
import { messageOf } from "../../gateway.ts"
import { useSession } from "../../session.ts"

/** A request that code is tried on. */
export interface Sample {
  readonly request: Row<"RequestSample">
  readonly context: { readonly request_id: string; readonly source_id: string } | null
}

/** Stored requests and fixtures that are offered; any other one is named by its id. */
const maxOffered = 25

const sampleOf = (data: Row<"RequestData">, context: Sample["context"]): Sample => ({
  request: {
    method: data.method as "POST",
    path: data.path,
    query: data.parsed_query,
    headers: data.headers,
    body: data.body
  },
  context
})

const gone = new Error("The content of this request is not kept any more.")

/** Chooses a stored request, or a fixture, whose content becomes the sample. */
export const SampleChoice = ({ change }: { readonly change: (sample: Sample) => void }) => {
  const { client, team } = useSession()
  const [chosen, setChosen] = useState("")
  const [id, setId] = useState("")
  const [error, setError] = useState<string | null>(null)
  const requests = useQuery({
    queryKey: ["sample requests", team],
    queryFn: () =>
      client.get("/requests", { params: { query: { from: "now-30d", status: "accepted", limit: maxOffered } } }),
    staleTime: 60_000
  })
  const fixtures = useQuery({
    queryKey: ["sample fixtures", team],
    queryFn: () => client.get("/request-fixtures", { params: { query: { limit: maxOffered } } }),
    retry: false
  })
  const take = async (wanted: string) => {
    setChosen(wanted)
    setError(null)
    if (wanted === "") return
    const path = { params: { path: { id: wanted } } }
    try {
      if (wanted.startsWith("fix_")) {
        const { original_request_id, snapshot, source_id } = await client.get("/request-fixtures/{id}", path)
        if (snapshot === undefined) throw gone
        return change(sampleOf(snapshot, { request_id: original_request_id, source_id }))
      }
      const { data, source_id } = await client.get("/requests/{id}", path)
      if (data === null || data === undefined) throw gone
      change(sampleOf(data, { request_id: wanted, source_id }))
    } catch (failure) {
      setError(messageOf(failure))
    }
  }
  const isOffered = [...(requests.data?.models ?? []), ...(fixtures.data?.models ?? [])].some(
    (one) => one.id === chosen
  )
  return (
    <>
      <div className="bar">
        <label className="field">
          A stored request or a fixture
          <select value={isOffered ? chosen : ""} onChange={({ target }) => void take(target.value)}>
            <option value="">–</option>
            <optgroup label="Requests">
              {requests.data?.models.map(({ id, ingested_at }) => (
                <option key={id} value={id}>
                  {new Date(ingested_at).toLocaleString()} {id}
                </option>
              ))}
            </optgroup>
            {fixtures.data === undefined || fixtures.data.models.length === 0 ? null : (
              <optgroup label="Fixtures">
                {fixtures.data.models.map(({ id, name }) => (
                  <option key={id} value={id}>
                    {name}
                  </option>
                ))}
              </optgroup>
            )}
          </select>
        </label>
        <label className="field">
          or its id
          <input value={id} placeholder="req_…" onChange={({ target }) => setId(target.value.trim())} />
        </label>
        <button type="button" disabled={id === ""} onClick={() => void take(id)}>
          Take it
        </button>
      </div>
      {error === null ? null : (
        <p role="alert" className="notice bad">
          {error}
        </p>
      )}
    </>
  )
}
