import { z } from 'zod';
import { operatorsSharedOperations } from './console-operations.ts';
import type { Operation, Operations } from './operation.ts';
import { accountQuery, pageQuery } from './queries.ts';

/** An operation for operators. */
const operators = (operation: Omit<Operation, 'guard' | 'tag'>): Operation => ({
  ...operation,
  tag: 'Operators',
  guard: 'operator',
});
const page = pageQuery(50, 200);

const accounts: Operations = {
  'GET /admin/v1/accounts': operators({
    ...{ id: 'listAccounts', summary: 'List accounts' },
    query: { ...page, search: z.string().describe('A part of the name, or an id.') },
    answer: { json: 'AccountPage' },
  }),
  'POST /admin/v1/accounts': operators({
    ...{ id: 'createAccount', summary: 'Create an account', json: 'AccountFields' },
    answer: { status: 201, json: 'Account' },
  }),
  'GET /admin/v1/accounts/:id': operators({
    ...{ id: 'getAccount', summary: 'Get an account', answer: { json: 'Account' } },
  }),
  'PATCH /admin/v1/accounts/:id': operators({
    ...{ id: 'changeAccount', summary: 'Rename, suspend or unlimit an account', json: 'AccountChange' },
    answer: { json: 'Account' },
  }),
  'GET /admin/v1/accounts/:id/credits': operators({
    ...{ id: 'listCredits', summary: 'List the credits of an account', query: page, answer: { json: 'CreditPage' } },
  }),
  'POST /admin/v1/accounts/:id/credits': operators({
    ...{ id: 'addCredit', summary: 'Add credit to an account, or take it off', json: 'CreditFields' },
    description:
      '`amount` is in dollars; a negative one takes credit off. A repeat with the same `Idempotency-Key` and body, at any time, adds nothing and returns the same credit.',
    headers: ['Idempotency-Key'],
    answer: { status: 201, json: 'Credit' },
  }),
};

const keys: Operations = {
  'GET /admin/v1/accounts/:id/keys': operators({
    ...{ id: 'listKeys', summary: 'List the API keys of an account', answer: { json: 'KeyPage' } },
    query: { ...page, search: z.string().describe('A part of the name or of the beginning that is shown, or an id.') },
  }),
  'POST /admin/v1/accounts/:id/keys': operators({
    ...{ id: 'createKey', summary: 'Create an API key or an operator key', json: 'OperatorKeyFields' },
    answer: { status: 201, json: 'KeyWithText' },
  }),
  'PATCH /admin/v1/keys/:id': operators({
    ...{ id: 'changeKey', summary: 'Change an API key', json: 'OperatorKeyChange', answer: { json: 'Key' } },
  }),
  'DELETE /admin/v1/keys/:id': operators({
    ...{ id: 'revokeKey', summary: 'Revoke an API key', answer: { json: 'Key' } },
  }),
  'POST /admin/v1/keys/:id/rotate': operators({
    ...{ id: 'rotateKey', summary: 'Replace an API key by a new one', json: 'KeyRotation' },
    answer: { status: 201, json: 'KeyWithText' },
  }),
};

const users: Operations = {
  'GET /admin/v1/users': operators({
    ...{ id: 'listUsers', summary: 'List users' },
    query: { ...page, ...accountQuery, search: z.string().describe('A part of the address or the name.') },
    answer: { json: 'UserPage' },
  }),
  'POST /admin/v1/users': operators({
    ...{ id: 'inviteUser', summary: 'Invite a user', json: 'Invitation' },
    answer: { status: 201, json: 'InvitedUser' },
  }),
  'PATCH /admin/v1/users/:id': operators({
    ...{ id: 'changeUser', summary: 'Change, move or disable a user', json: 'UserChange', answer: { json: 'User' } },
  }),
  'DELETE /admin/v1/users/:id': operators({
    ...{ id: 'deleteUser', summary: 'Delete a user', answer: { json: 'UserDeleted' } },
  }),
  'POST /admin/v1/users/:id/password-reset': operators({
    ...{ id: 'resetPassword', summary: 'Make a link by which a user chooses a new password' },
    answer: { status: 201, json: 'PasswordReset' },
  }),
};

/** The operations of `/admin/v1`, and the page of the queues. */
export const adminOperations: Operations = {
  ...accounts,
  ...keys,
  ...users,
  ...operatorsSharedOperations,
  'GET /admin/v1/workers': operators({
    ...{ id: 'listWorkers', summary: 'List the workers', answer: { json: 'WorkerList' } },
  }),
  'GET /admin/v1/vendors': operators({
    ...{ id: 'listVendors', summary: 'List the vendors and their health', answer: { json: 'VendorList' } },
  }),
  'GET /admin/v1/models': operators({
    ...{ id: 'listAllModels', summary: 'List all models with their routes', answer: { json: 'ModelRoutes' } },
  }),
  'GET /admin/v1/queues': operators({
    ...{ id: 'listQueues', summary: 'List the queues', answer: { json: 'QueueList' } },
  }),
  'GET /console/queues{/*path}': {
    ...{ id: 'queueBoard', tag: 'Operators', guard: 'session', summary: 'The page of the queues' },
    description: "For operators' sessions only.",
    answer: { types: ['text/html', 'application/json', 'text/css', 'text/javascript'] },
  },
};
