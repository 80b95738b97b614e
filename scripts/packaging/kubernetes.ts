import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parseAllDocuments } from 'yaml'
import { type Check, NotRun, need, packaging, root, run } from './check.ts'

/** Checks the manifests against the schemas of Kubernetes; no cluster runs them. */
export const kubernetes: Check = async function* () {
  need('kubectl', 'kubernetes-client')
  const { stdout } = await run('kubectl', ['kustomize', packaging('kubernetes')])
  const objects = parseAllDocuments(stdout).map((document) => document.toJS())
  assert.deepEqual(objects.map(({ kind }) => kind).sort(), [
    'Deployment',
    'Job',
    'PodDisruptionBudget',
    'Service',
  ])
  yield 'kubectl kustomize reads them'
  const dir = await mkdtemp(join(tmpdir(), 'ck-kube-'))
  try {
    const options = ['--no-audit', '--no-fund', '--ignore-scripts', '--prefix', dir]
    await run('npm', ['install', ...options, 'kubernetes-models@5.1.0'], { cwd: root }).catch((error) => {
      throw new NotRun(`the schemas cannot be installed: ${error.message.split('\n')[0]}`)
    })
    for (const object of objects) {
      const file = join(dir, 'node_modules/kubernetes-models', object.apiVersion, `${object.kind}.js`)
      const { [object.kind]: Model } = await import(pathToFileURL(file).href)
      new Model(object).validate()
      const wrong = structuredClone(object)
      wrong.metadata.labels = [1]
      assert.throws(() => new Model(wrong).validate(), 'the schema refuses what is wrong')
      yield `${object.kind} follows its schema`
    }
  } finally {
    await rm(dir, { recursive: true })
  }
  throw new NotRun('on a cluster: there is none here')
}
