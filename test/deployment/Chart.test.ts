import { spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import { globSync, readFileSync } from "node:fs"
import { homedir } from "node:os"
import { delimiter, join } from "node:path"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "vitest"
import { parseAllDocuments } from "yaml"
import { validate as validDeployment } from "kubernetes-models/_schemas/IoK8sApiAppsV1Deployment"
import { validate as validAutoscaler } from "kubernetes-models/_schemas/IoK8sApiAutoscalingV2HorizontalPodAutoscaler"
import { validate as validService } from "kubernetes-models/_schemas/IoK8sApiCoreV1Service"
import { validate as validIngress } from "kubernetes-models/_schemas/IoK8sApiNetworkingV1Ingress"
import { validate as validNetworkPolicy } from "kubernetes-models/_schemas/IoK8sApiNetworkingV1NetworkPolicy"
import { validate as validBudget } from "kubernetes-models/_schemas/IoK8sApiPolicyV1PodDisruptionBudget"
import { type Validate, faultsOf } from "../support/Kubernetes.ts"

/**
 * The chart of `infra/chart`. A machine with helm renders it with each file of values here, and compares the result with what is recorded
 * beside them. All machines check what is recorded: so a chart that nobody renders is still a chart of valid objects.
 */

const root = fileURLToPath(new URL("../..", import.meta.url))
const here = join(root, "test/deployment/chart")
const recordOf = (name: string): string => join(here, `${name}.rendered.txt`)
const names = ["one", "cluster", "everything"] as const

const programs = [process.env["PATH"], join(homedir(), "go/bin")].join(delimiter)
const using = (program: string) => (args: ReadonlyArray<string>) =>
  spawnSync(program, args, { cwd: root, encoding: "utf8", env: { ...process.env, PATH: programs } })
const helm = using("helm")
const kubeScore = using("kube-score")
const hasHelm = helm(["version"]).error === undefined
const hasKubeScore = kubeScore(["version"]).error === undefined
if (!hasKubeScore) process.stdout.write("No kube-score here: the policies of Kubernetes' users are not checked.\n")
if (!hasHelm) process.stdout.write("No helm here: the chart is not rendered, only what is recorded of it is checked.\n")

/** A helm that was built by `go install` does not know for which Kubernetes it is. */
const render = (values: ReadonlyArray<string>) =>
  helm(["template", "release", "infra/chart", "--kube-version", "1.33.0", ...values])

/** Of all from which a record is made: a record of another chart says so. */
const digestOf = (name: string): string =>
  [...globSync("infra/chart/**/*.{yaml,tpl}", { cwd: root }), `test/deployment/chart/${name}.yaml`]
    .toSorted((a, b) => (a < b ? -1 : 1))
    .reduce((hash, path) => hash.update(`${path}\n`).update(readFileSync(join(root, path))), createHash("sha256"))
    .digest("hex")

// oxlint-disable-next-line typescript/no-explicit-any
type Rendered = any

const objectsOf = (text: string): ReadonlyArray<Rendered> =>
  parseAllDocuments(text).flatMap((document) => {
    expect(document.errors).toEqual([])
    return document.toJS() ?? []
  })

const schemas: Readonly<Record<string, Validate>> = {
  "apps/v1 Deployment": validDeployment,
  "autoscaling/v2 HorizontalPodAutoscaler": validAutoscaler,
  "v1 Service": validService,
  "networking.k8s.io/v1 Ingress": validIngress,
  "networking.k8s.io/v1 NetworkPolicy": validNetworkPolicy,
  "policy/v1 PodDisruptionBudget": validBudget
}

const recorded = (name: string): ReadonlyArray<Rendered> => objectsOf(readFileSync(recordOf(name), "utf8"))
const ofKind = (objects: ReadonlyArray<Rendered>, kind: string) => objects.filter((object) => object.kind === kind)

/** Whether a selector chooses the pods of a deployment. */
const chooses = (selector: Readonly<Record<string, string>>, deployment: Rendered): boolean =>
  Object.entries(selector).every(([label, value]) => deployment.spec.template.metadata.labels[label] === value)

describe.each(names)("Chart with the values of %s", (name) => {
  it.runIf(hasHelm)("Chart renders what is recorded, and helm's own check finds nothing", async () => {
    const values = ["--values", join(here, `${name}.yaml`)]
    const { status, stderr, stdout } = render(values)
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" })
    await expect(`# sha256 ${digestOf(name)}\n${stdout}`).toMatchFileSnapshot(recordOf(name))
    expect(helm(["lint", "--strict", "--kube-version", "1.33.0", "infra/chart", ...values])).toMatchObject({
      status: 0
    })
  })

  it("Record is of this chart; if not, run this suite twice with -u where helm is installed", () => {
    expect(readFileSync(recordOf(name), "utf8")).toMatch(new RegExp(`^# sha256 ${digestOf(name)}\n`))
  })

  it("Objects have the members of Kubernetes' schemas and no others", () => {
    const objects = recorded(name)
    expect(objects.length).toBeGreaterThan(2)
    for (const object of objects) {
      const { apiVersion, kind } = object
      const validate = schemas[`${apiVersion} ${kind}`]
      expect({ kind, hasSchema: validate !== undefined }).toEqual({ kind, hasSchema: true })
      expect({ kind, faults: faultsOf(validate!, object) }).toEqual({ kind, faults: [] })
    }
  })

  it("Objects name each other: pods of services and budgets, ports of policies, deployments of autoscalers", () => {
    const objects = recorded(name)
    const deployments = ofKind(objects, "Deployment")
    const roles = deployments.map(({ spec }) => spec.template.metadata.labels["app.kubernetes.io/component"])
    for (const { spec } of deployments) expect(spec.template.metadata.labels).toMatchObject(spec.selector.matchLabels)
    const [service] = ofKind(objects, "Service")
    const served = deployments.filter((deployment) => chooses(service.spec.selector, deployment))
    expect(served).toHaveLength(roles.filter((role) => role !== "runner").length)
    expect(served.length).toBeGreaterThan(0)
    const budgets = ofKind(objects, "PodDisruptionBudget").map(({ spec }) =>
      deployments
        .filter((deployment) => chooses(spec.selector.matchLabels, deployment))
        .map(({ metadata }) => metadata.name)
    )
    expect(budgets).toEqual(deployments.map(({ metadata }) => [metadata.name]))
    const ports = new Set(
      deployments.flatMap(({ spec }) => spec.template.spec.containers[0].ports.map((port: Rendered) => port.name))
    )
    for (const { spec } of ofKind(objects, "NetworkPolicy"))
      for (const rule of spec.ingress) expect(ports).toContain(rule.ports[0].port)
    for (const { spec } of ofKind(objects, "HorizontalPodAutoscaler")) {
      const scaled = deployments.find(({ metadata }) => metadata.name === spec.scaleTargetRef.name)
      // Helm would undo what the autoscaler has decided at each update.
      expect(scaled.spec).not.toHaveProperty("replicas")
    }
  })

  it("Pods satisfy the restricted standard of Kubernetes, are probed, and have bounds", () => {
    for (const { spec } of ofKind(recorded(name), "Deployment")) {
      const pod = spec.template.spec
      expect(pod).toMatchObject({
        automountServiceAccountToken: false,
        securityContext: { runAsNonRoot: true, runAsUser: 10001, seccompProfile: { type: "RuntimeDefault" } }
      })
      expect(pod.volumes.every((volume: Rendered) => volume.emptyDir.sizeLimit !== undefined)).toBe(true)
      expect(pod.containers).toHaveLength(1)
      expect(pod.containers[0]).toMatchObject({
        image: expect.stringMatching(/:\d+\.\d+\.\d+/),
        securityContext: {
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ["ALL"] }
        },
        startupProbe: { httpGet: { port: "http" } },
        livenessProbe: { httpGet: { port: "http" } },
        readinessProbe: { httpGet: { port: "http" } },
        resources: {
          requests: { cpu: expect.any(String), memory: expect.any(String) },
          limits: { memory: expect.any(String), "ephemeral-storage": expect.any(String) }
        }
      })
    }
  })
})

/** What kube-score asks for and the chart does not do, with the reason. */
const exceptions: Readonly<Record<string, string>> = {
  "(gateway) CPU limit is not set": "a process that is throttled answers late, and may lose its shards",
  "(gateway) ImagePullPolicy is not set to Always": "the tag is a version, and does not change",
  "Deployment does not have a host podAntiAffinity set": "the pods are spread by topologySpreadConstraints",
  "The pod does not have a matching egress NetworkPolicy": "deliveries go everywhere; the gateway guards where",
  "The pod does not have a matching NetworkPolicy": "the values of `one` switch it off",
  "Deployment few replicas": "the values say so"
}

it.runIf(hasKubeScore)("kube-score finds in the chart's objects only what is an exception with a reason", () => {
  const found = names.flatMap((name) => {
    const { stdout } = kubeScore(["score", "--kubernetes-version", "v1.33", "--output-format", "ci", recordOf(name)])
    expect(stdout).toContain("[OK] release")
    return Array.from(stdout.matchAll(/^\[(?:CRITICAL|WARNING)\] [^:]+: (.+)$/gm)).map(([, what]) => what!)
  })
  expect([...new Set(found)].toSorted()).toEqual(Object.keys(exceptions).toSorted())
})

const refused: ReadonlyArray<readonly [why: string, set: string, said: string]> = [
  ["no public URL", "publicUrl=", "publicUrl is needed"],
  ["no Secret", "existingSecret=", "existingSecret is needed"],
  ["nothing that takes requests", "roles.edge.replicas=0", "nothing would take requests"],
  ["nothing that delivers", "roles.runner.replicas=0", "nothing would deliver"]
]

it.runIf(hasHelm).each(refused)("Chart with %s is refused in a sentence", (_, set, said) => {
  const { status, stderr } = render(["--values", join(here, "cluster.yaml"), "--set", set])
  expect(status).toBe(1)
  expect(stderr).toContain(said)
})

it("Checks of schemas find a member that does not exist, a missing one, and a value of another type", () => {
  const service = { apiVersion: "v1", kind: "Service", spec: { ports: [{ port: 80 }] } }
  expect(faultsOf(validService, service)).toEqual([])
  expect(faultsOf(validService, { ...service, spec: { ports: [{ port: 80, prot: "TCP" }] } })).toEqual([
    "/spec/ports/0/prot is unknown"
  ])
  expect(faultsOf(validService, { ...service, spec: { ports: [{}] } })).toEqual([expect.stringContaining("port")])
  expect(faultsOf(validService, { ...service, spec: { ports: "80" } })).toEqual([
    expect.stringContaining("/spec/ports")
  ])
})
