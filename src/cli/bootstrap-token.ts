import { group, subcommand } from './command.ts'
import { withService } from './with-service.ts'

const reset = subcommand('bootstrap-token', {
  name: 'reset',
  summary: 'Write a fresh bootstrap token, while nobody has bootstrapped, and print where it is.',
  run: ({ out, io }) =>
    withService(io, async ({ operations }) => {
      const { path } = await operations.resetBootstrapToken()
      out.result({ path }, path)
    }),
})

export const bootstrapToken = group({
  name: 'bootstrap-token',
  summary: 'The one-time token that makes the first account.',
  details: 'Its file is readable by its owner only; a running server takes the new token at once.',
  commands: [reset],
})
