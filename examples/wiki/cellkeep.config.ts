import { type Actions, defineConfig } from 'cellkeep'
import * as editing from './editing.ts'
import { hooks } from './hooks.ts'
import * as pages from './pages.ts'
import { audit_events, notifications, reasons } from './vocabulary.ts'

const actions = { ...pages, ...editing }

/** For the clients: `createClient<Wiki>({ url })` knows the built-in methods and these. */
export type Wiki = Actions & typeof actions

export default defineConfig({
  scope_kinds: [{ name: 'workspace' }],
  roles: [
    {
      name: 'writer',
      description: 'Writes pages in a workspace.',
      grant_paths: ['admin'],
      applicable_scope_kinds: ['workspace'],
    },
  ],
  reasons,
  audit_events,
  notifications,
  hooks,
  actions,
})
