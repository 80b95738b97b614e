import { expect, it } from 'vitest'
import { actions } from '../src/actions.ts'
import { keys } from '../src/config/table.ts'
import { catalogue } from '../src/reasons.ts'
import { routes } from '../src/routes.ts'
import { pages, stalePages } from './docs.ts'
import { wrongFeatures } from './docs-features.ts'

it('the generated pages are up to date (otherwise: node scripts/docs.ts)', () => {
  expect(stalePages()).toEqual([])
})

it('docs/configuration.md has one row per setting', () => {
  const text = pages['docs/configuration.md']?.() ?? ''
  const names = [...text.matchAll(/^\| `CELLKEEP_(\w+)` \|/gm)].map(([, name]) => name?.toLowerCase())
  expect(names).toEqual(keys)
})

it('docs/api.md has one section per method and route, and no type left unsaid', () => {
  const text = pages['docs/api.md']?.() ?? ''
  const sections = [...text.matchAll(/^### (.+)$/gm)].map(([, title]) => title)
  expect(sections).toEqual([
    ...Object.keys(actions).map((name) => `\`${name}\``),
    ...Object.values(routes).map(({ method, path }) => `${method} \`/api/account${path}\``),
  ])
  expect(text).not.toMatch(/undefined|\[object/)
})

it('docs/api.md says of each method and route that a service may lack when it exists', () => {
  expect(wrongFeatures()).toEqual([])
})

it('docs/errors.md has one row per reason', () => {
  const text = pages['docs/errors.md']?.() ?? ''
  const rows = [...text.matchAll(/^\| `(\w+)` \|/gm)].map(([, reason]) => reason)
  expect(rows).toEqual(Object.keys(catalogue))
})
