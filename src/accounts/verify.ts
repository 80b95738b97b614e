import { route } from '../core/route.ts'

/** `GET /verify`: for the auth sub-request of a reverse proxy. */
export const verify = route({
  doc: 'Answer 200 with an empty body for a valid credential; headers name the account.',
  method: 'GET',
  path: '/verify',
  auth: { account: 'required', actor: 'none' },
  anyQuery: true,
  handler: async (_input, { account }) => ({
    body: null,
    headers: { 'x-svc-account-id': account.id, 'x-svc-username': account.username },
  }),
})
