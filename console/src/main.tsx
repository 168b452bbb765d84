import '@mantine/core/styles.css';
import '@mantine/notifications/styles.css';
import './styles.css';
import { Notifications } from '@mantine/notifications';
import { QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { queryClient } from './api/query-client.ts';
import { router } from './router.tsx';
import { keepFocus } from './shell/keep-focus.ts';
import { Themed } from './shell/themed.tsx';

const root = document.getElementById('root');
if (root === null) throw new Error('The page has no #root.');

keepFocus();
createRoot(root).render(
  <StrictMode>
    <Themed>
      <Notifications position="bottom-right" />
      <QueryClientProvider client={queryClient}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </Themed>
  </StrictMode>,
);
